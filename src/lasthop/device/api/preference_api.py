"""The device's preferences about links and spending, and explanations of the decisions that follow
from them."""

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
    """Methods of `Device` that set preferences and explain their effect."""

    async def prefer(
        self, preferences: Preferences, *, sending: Preferences | None = None
    ) -> MessageHandle:
        """Set which links to use, when not to disturb the user, and what may be spent.

        The gateway obeys the preferences for messages to this device, and the device obeys them for
        messages that it sends, also after a restart. The gateway and the device count their
        spending separately. `sending` sets other preferences for the messages that this device
        sends. Returns when the preferences are durable on this device.
        """
        ours = preferences if sending is None else sending
        draft = compose.preferences(preferences)

        def act(session: DeviceSession, now: Micros) -> int:
            key = draft.queue(session, now)
            session.preferences.prefer(ours)
            return key

        handle = await self.enqueue(act, self.handles.queued)
        self.speak_by(ours)
        return handle

    async def explain(self, message: MessageHandle | str) -> Explanation | None:
        """Return why a message of this device, given by handle or id, went over a certain link or
        still waits. None if the device has no preferences, or the decision is too old to be
        remembered."""
        key = message.key if isinstance(message, MessageHandle) else int(message, 16)
        found: Explanation | None = await self.do(
            lambda session, _now: session.preferences.explain(key)
        )
        return found

    async def held_back(self) -> list[Explanation]:
        """Return explanations of the messages of this device that wait for a link or a limit, the
        oldest first."""
        found: list[Explanation] = await self.do(
            lambda session, _now: session.preferences.held_back()
        )
        return found

    async def spending(self) -> list[BudgetMeter]:
        """Return how much of each limit on this device's sending is used in its present period."""
        meters: list[BudgetMeter] = await self.do(
            lambda session, now: session.preferences.spending(now)
        )
        return meters

    def on_links_wanted(self, callback: Callable[[tuple[str, ...]], None]) -> None:
        """Set the function that is called with the names of links, the best first, when messages
        wait for one of them to come up."""
        self.handles.on_links_wanted = callback
