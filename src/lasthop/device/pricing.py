"""Which of several open links a device speaks over: the one that its own wishes make the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lasthop.clock import Micros
from lasthop.decision.cost import cost
from lasthop.decision.links import Link as Declared, Tariff
from lasthop.decision.preferences import Preferences
from lasthop.transport.link import ChannelLink

TYPICAL_SIZE = 512
"""Bytes for which links are compared: what a device says at a time is small."""


def dearest_first(
    links: Sequence[ChannelLink], labels: Mapping[ChannelLink, str], preferences: Preferences
) -> list[ChannelLink]:
    """The links in the order of their cost, as declared and corrected by what was measured; those
    that cost the same as they were."""
    weights = preferences.queue(None).weights

    def price(link: ChannelLink) -> float:
        label = labels.get(link) or "link"
        declared = preferences.link(label) or Declared(label, Tariff())
        measured = declared.measured(latency=round_trip(link), contention=1.0)
        return -cost(measured, TYPICAL_SIZE, weights)

    return sorted(links, key=price)


def round_trip(link: ChannelLink) -> Micros | None:
    """The smoothed round-trip time of a link, when it is known."""
    roundtrip = getattr(link.machine, "roundtrip", None)
    return roundtrip.smoothed if roundtrip is not None else None
