"""What was said on the links of a stage, to be kept in a file and to be compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class SessionEvent(NamedTuple):
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

    def __init__(self, session_events: Iterable[SessionEvent] = ()) -> None:
        self.session_events = list(session_events)
        self.over = False
        """Whether what happens from now on is nothing to remember."""

    def note(self, session_event: SessionEvent) -> None:
        """It goes on."""
        if not self.over:
            self.session_events.append(session_event)

    def by(self, who: str) -> list[SessionEvent]:
        """What one side did."""
        return [session_event for session_event in self.session_events if session_event.who == who]

    def said_by(self, who: str) -> list[str]:
        """The same, one line for all that was said on a stream in one moment: how its bytes are cut
        into writes is nobody's business."""
        dialled = [one for one in self.session_events if one.what == "dial"]
        streams = {one.wire for one in dialled if one.data.startswith(b"stream")}
        lines: list[str] = []
        last: SessionEvent | None = None
        for session_event in sorted(self.by(who), key=lambda one: (one.wire, one.t)):
            if (
                last is not None
                and session_event.what == last.what == "bytes"
                and (session_event.t, session_event.wire) == (last.t, last.wire)
                and session_event.wire in streams
            ):
                last = session_event._replace(data=last.data + session_event.data)
                lines[-1] = last.line()
            else:
                last = session_event
                lines.append(session_event.line())
        return lines

    def text(self) -> str:
        """As a file has it."""
        return "".join(session_event.line() + "\n" for session_event in self.session_events)

    @classmethod
    def read(cls, text: str) -> Tape:
        """What a file has."""
        session_events = []
        for line in text.splitlines():
            t, wire, who, what, *data = line.split(" ")
            content = bytes.fromhex(data[0]) if data else b""
            session_events.append(SessionEvent(int(t), int(wire), who, what, content))
        return cls(session_events)
