"""Which links a device uses and what it may spend, and why it did what it did."""

from __future__ import annotations

from collections.abc import Callable

from lasthop.clock import Micros
from lasthop.decision.budgets import BudgetMeter
from lasthop.decision.preferences import Preferences
from lasthop.device import compose
from lasthop.device.api.device_api import DeviceApi
from lasthop.device.handle import MessageHandle
from lasthop.device.preferences.explanation import Explanation
from lasthop.device.session import DeviceSession


class PreferenceApi(DeviceApi):
    """Wishes, and what came of them."""

    async def prefer(
        self, preferences: Preferences, *, sending: Preferences | None = None
    ) -> MessageHandle:
        """Say which links to use, when not to be disturbed, and what may be spent. The gateway
        keeps to it for what it sends us, and so do we for what we send, in this life and later
        ones; each counts what it sends itself. With `sending` that is wished for otherwise."""
        ours = preferences if sending is None else sending
        draft = compose.preferences(preferences)

        def act(session: DeviceSession, now: Micros) -> int:
            key = draft.queue(session, now)
            session.preferences.prefer(ours)
            return key

        handle = await self.enqueue(act, self.codec.queued)
        self.speak_by(ours)
        return handle

    async def explain(self, message: MessageHandle | str) -> Explanation | None:
        """Why a message that we sent, by its handle or its id, went over a link or waits. None:
        without wishes nothing is decided, and what was decided long ago is forgotten."""
        key = message.key if isinstance(message, MessageHandle) else int(message, 16)
        found: Explanation | None = await self.do(
            lambda session, _now: session.preferences.explain(key)
        )
        return found

    async def held_back(self) -> list[Explanation]:
        """Messages that we sent and that wait for a link or a limit, the oldest first."""
        found: list[Explanation] = await self.do(
            lambda session, _now: session.preferences.held_back()
        )
        return found

    async def spending(self) -> list[BudgetMeter]:
        """What is used of each limit on what we send, in its present period."""
        meters: list[BudgetMeter] = await self.do(
            lambda session, now: session.preferences.spending(now)
        )
        return meters

    def on_links_wanted(self, callback: Callable[[tuple[str, ...]], None]) -> None:
        """Call this with links, the best first, when messages wait for one of them to come up."""
        self.codec.on_links_wanted = callback
