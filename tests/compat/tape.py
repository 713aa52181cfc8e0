"""What was said on the links of a stage, to be kept in a file and to be compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Happening(NamedTuple):
    """Something that one end of a link did."""

    t: int
    """Microseconds since the beginning of all recordings."""
    wire: int
    """Links are numbered in the order in which they were dialled."""
    who: str
    """`device` or `gateway`."""
    what: str
    """`dial`, `bytes`, `close` or `cut`."""
    data: bytes = b""

    def line(self) -> str:
        """As it stands in a file."""
        return f"{self.t} {self.wire} {self.who} {self.what} {self.data.hex()}".rstrip()


class Tape:
    """Everything that happened on the links, in order."""

    def __init__(self, happenings: Iterable[Happening] = ()) -> None:
        self.happenings = list(happenings)
        self.over = False
        """Whether what happens from now on is nothing to remember."""

    def note(self, happening: Happening) -> None:
        """It goes on."""
        if not self.over:
            self.happenings.append(happening)

    def by(self, who: str) -> list[Happening]:
        """What one side did."""
        return [happening for happening in self.happenings if happening.who == who]

    def said_by(self, who: str) -> list[str]:
        """The same, one line for all that was said on a stream in one moment: how its bytes are cut
        into writes is nobody's business."""
        dialled = [one for one in self.happenings if one.what == "dial"]
        streams = {one.wire for one in dialled if one.data.startswith(b"stream")}
        lines: list[str] = []
        last: Happening | None = None
        for happening in sorted(self.by(who), key=lambda one: (one.wire, one.t)):
            if (
                last is not None
                and happening.what == last.what == "bytes"
                and (happening.t, happening.wire) == (last.t, last.wire)
                and happening.wire in streams
            ):
                last = happening._replace(data=last.data + happening.data)
                lines[-1] = last.line()
            else:
                last = happening
                lines.append(happening.line())
        return lines

    def text(self) -> str:
        """As a file has it."""
        return "".join(happening.line() + "\n" for happening in self.happenings)

    @classmethod
    def read(cls, text: str) -> Tape:
        """What a file has."""
        happenings = []
        for line in text.splitlines():
            t, wire, who, what, *data = line.split(" ")
            content = bytes.fromhex(data[0]) if data else b""
            happenings.append(Happening(int(t), int(wire), who, what, content))
        return cls(happenings)
