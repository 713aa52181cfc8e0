"""Instructions of the gateway to show kept messages: the number of an instruction is closed when
the application is done with all of them."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.device.message import Message


class Showing:
    """An instruction to show messages, until the application is done with all of them."""

    __slots__ = ("control", "had", "left", "partly", "report")

    def __init__(self, control: Message, report: Callable[[list[int]], None]) -> None:
        self.control = control
        self.report = report
        """Called with the keys that the application has had, if not all messages can be shown."""
        self.left: set[int] = set()
        self.had: list[int] = []
        self.partly = False
        """Whether some of the messages cannot be shown."""


class Showings:
    """The instructions that are not finished, by the keys that they wait for."""

    def __init__(self) -> None:
        self._open: dict[int, list[Showing]] = {}

    def add(self, showing: Showing) -> None:
        """Follow an instruction until the application is done with its messages."""
        for key in showing.left:
            self._open.setdefault(key, []).append(showing)

    def ended(self, key: int, *, had: bool) -> list[Showing]:
        """Note that the application is done with a message, or never gets it; return the
        instructions that are finished by that."""
        done: list[Showing] = []
        for showing in self._open.pop(key, ()):
            showing.left.discard(key)
            if had:
                showing.had.append(key)
            else:
                showing.partly = True
            if not showing.left:
                done.append(showing)
        return done
