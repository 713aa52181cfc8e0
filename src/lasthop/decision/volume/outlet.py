"""Where a feed reports what it wants done, at the moment of the decision."""

from __future__ import annotations

from lasthop.decision.volume.effects import DropEvent, Effect, Forward, Hold, Rerank, Retract, Show
from lasthop.decision.volume.entry import FeedEntry


class Outlet:
    """Carries out at once what a feed wants done, as the device of a rehearsal does. The feed must
    not be called meanwhile."""

    def __init__(self, *, hears_of_holds: bool) -> None:
        self.hears_of_holds = hears_of_holds

    def forward(self, entry: FeedEntry, reason: str, instead_of: int | None) -> None:
        """Send the event to the device, which keeps it until it is shown."""
        raise NotImplementedError

    def show(self, keys: list[int], reason: str) -> None:
        """Show these events to the user now, best first; they leave the device's queue."""
        raise NotImplementedError

    def retract(self, key: int, reason: str) -> None:
        """Let the device forget an unread event."""
        raise NotImplementedError

    def rerank(self, key: int, rank: float) -> None:
        """Tell the device the new rank of an event that it holds."""
        raise NotImplementedError

    def hold(self, key: int, reason: str) -> None:
        """Keep the event at the gateway for now. Only called if `hears_of_holds` is set."""

    def drop(self, key: int, reason: str) -> None:
        """Give up an event at the gateway that the device never got."""


class Noted(Outlet):
    """Collects the effects for the gateway, which carries them out after its commit."""

    def __init__(self) -> None:
        super().__init__(hears_of_holds=True)
        self._effects: list[Effect] = []

    def take(self) -> list[Effect]:
        """Return the effects since the last call."""
        effects, self._effects = self._effects, []
        return effects

    def forward(self, entry: FeedEntry, reason: str, instead_of: int | None) -> None:
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
        self._effects.append(DropEvent(key, reason))
