"""What is watched while a learned version is on trial: the live loss of some devices' feeds.

Nothing is watched without a trial. The counts are those since the trial began or the gateway was
started, whichever was later; they are not stored.
"""

from __future__ import annotations

from lasthop.core.ranked.subscription import RankedSubscription
from lasthop.decision.trial_verdict import TrialGroup
from lasthop.decision.volume.live_loss import LossWatch
from lasthop.decision.volume.policy_choice import PolicyBook

MOST_DEVICES = 1000
"""The largest number of devices that are watched in each group: more would make the comparison no
better, and each watched feed costs memory and time for every message."""


class LossWatches:
    """The watched feeds of the devices that take part in a trial."""

    def __init__(self, book: PolicyBook) -> None:
        self._book = book
        self._trial = ""
        self._watches: dict[TrialGroup, dict[tuple[str, str], list[LossWatch]]] = {}

    def watch(self, subscription: RankedSubscription) -> None:
        """Watch a feed if its device takes part in the present trial, and otherwise no longer."""
        device = subscription.session.device
        part = self._book.trial(device.app, device.name)
        if part is None:
            subscription.watch = None
            return
        trial, group = part
        if trial != self._trial:
            self._trial, self._watches = trial, {}
        devices = self._watches.setdefault(group, {})
        at = (device.app, device.name)
        if at not in devices and len(devices) >= MOST_DEVICES:
            subscription.watch = None
            return
        watches = devices.setdefault(at, [])
        if subscription.watch is None or subscription.watch not in watches:
            feed = subscription.feed
            entries = [entry for key in feed.entries() if (entry := feed.entry(key)) is not None]
            subscription.watch = LossWatch(entries, threshold=subscription.subscription.threshold)
            watches.append(subscription.watch)

    def counts(self, group: TrialGroup) -> list[tuple[int, int]]:
        """Return how many messages were read and how many lost, for each watched device."""
        return [
            (sum(watch.read for watch in watches), sum(watch.lost for watch in watches))
            for watches in self._watches.get(group, {}).values()
        ]
