"""The gateway's word to show messages that are kept: its number is closed when the application has
had all of them."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.device.message import Message


class Showing:
    """An instruction to show messages, until the application has had all of them."""

    __slots__ = ("control", "had", "left", "partly", "report")

    def __init__(self, control: Message, report: Callable[[list[int]], None]) -> None:
        self.control = control
        self.report = report
        """Is told what the application has had, if not all of it can come true."""
        self.left: set[int] = set()
        self.had: list[int] = []
        self.partly = False
        """Not all of it can come true."""


class Showings:
    """All instructions that have not come to their end, by the keys that they wait for."""

    def __init__(self) -> None:
        self._open: dict[int, list[Showing]] = {}

    def add(self, showing: Showing) -> None:
        """Wait for the application to be done with what is left of it."""
        for key in showing.left:
            self._open.setdefault(key, []).append(showing)

    def ended(self, key: int, *, had: bool) -> list[Showing]:
        """The application is done with a message, or never gets it; the instructions that have come
        to their end by that."""
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
