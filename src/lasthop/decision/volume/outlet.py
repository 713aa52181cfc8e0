"""Where a feed says what it wants done, at the moment of the decision."""

from __future__ import annotations

from lasthop.decision.volume.effects import Drop, Effect, Forward, Hold, Rerank, Retract, Show
from lasthop.decision.volume.entry import Entry


class Outlet:
    """Does it at once: the device's end of a rehearsal. The feed must not be asked meanwhile."""

    def __init__(self, *, hears_of_holds: bool) -> None:
        self.hears_of_holds = hears_of_holds

    def forward(self, entry: Entry, reason: str, instead_of: int | None) -> None:
        """Send the event to the device, which keeps it until it is shown."""
        raise NotImplementedError

    def show(self, keys: list[int], reason: str) -> None:
        """These go to the user now, best first; they leave the device's queue."""
        raise NotImplementedError

    def retract(self, key: int, reason: str) -> None:
        """The device forgets the event, unread."""
        raise NotImplementedError

    def rerank(self, key: int, rank: float) -> None:
        """The device holds the event and learns its new rank."""
        raise NotImplementedError

    def hold(self, key: int, reason: str) -> None:
        """The event stays at the gateway for now. Only said to whoever wants to hear of it."""

    def drop(self, key: int, reason: str) -> None:
        """The event's time at the gateway is over, and the device never got it."""


class Noted(Outlet):
    """Writes it down, for the gateway, which does nothing before its commit."""

    def __init__(self) -> None:
        super().__init__(hears_of_holds=True)
        self._effects: list[Effect] = []

    def take(self) -> list[Effect]:
        """What was noted since the last time."""
        effects, self._effects = self._effects, []
        return effects

    def forward(self, entry: Entry, reason: str, instead_of: int | None) -> None:
        self._effects.append(Forward(entry.key, reason, instead_of))

    def show(self, keys: list[int], reason: str) -> None:
        self._effects.append(Show(tuple(keys), reason))

    def retract(self, key: int, reason: str) -> None:
        self._effects.append(Retract(key, reason))

    def rerank(self, key: int, rank: float) -> None:
        self._effects.append(Rerank(key, rank))

    def hold(self, key: int, reason: str) -> None:
        self._effects.append(Hold(key, reason))

    def drop(self, key: int, reason: str) -> None:
        self._effects.append(Drop(key, reason))
