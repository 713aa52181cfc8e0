"""Instructions of the gateway to show messages to the application. An instruction has a sequence
number like a message; it is acknowledged as finished when the application is done with all messages
that it shows."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.device.message import Message


class Showing:
    """An instruction of the gateway to show messages, which lasts until the application is done
    with all of them."""

    __slots__ = ("control", "had", "left", "partly", "report")

    def __init__(self, control: Message, report: Callable[[list[int]], None]) -> None:
        self.control = control
        self.report = report
        """The function that is called, if some messages cannot be shown, with the keys of the
        messages that the application got."""
        self.left: set[int] = set()
        self.had: list[int] = []
        self.partly = False
        """Whether some of the messages cannot be shown."""


class Showings:
    """The instructions that are not finished, by the keys of the messages that they wait for."""

    def __init__(self) -> None:
        self._open: dict[int, list[Showing]] = {}

    def add(self, showing: Showing) -> None:
        """Follow an instruction until the application is done with its messages."""
        for key in showing.left:
            self._open.setdefault(key, []).append(showing)

    def ended(self, key: int, *, had: bool) -> list[Showing]:
        """Note that the application is done with a message, or never gets it; return the
        instructions that are finished now."""
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
