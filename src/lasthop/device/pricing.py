"""Chooses the link that a device sends over, if several are open: the best one according to its
preferences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lasthop.clock import Micros
from lasthop.decision.cost import cost
from lasthop.decision.links import Link as Declared, Tariff
from lasthop.decision.preferences import Preferences
from lasthop.transport.link import ChannelLink

TYPICAL_SIZE = 512
"""Bytes for which the costs of links are compared: a device's own messages are small."""


def dearest_first(
    links: Sequence[ChannelLink], labels: Mapping[ChannelLink, str], preferences: Preferences
) -> list[ChannelLink]:
    """Return the links in descending order of cost, which is the declared cost corrected by
    measurements; links of equal cost keep their order."""
    weights = preferences.queue(None).weights

    def price(link: ChannelLink) -> float:
        label = labels.get(link) or "link"
        declared = preferences.link(label) or Declared(label, Tariff())
        measured = declared.measured(latency=round_trip(link), contention=1.0)
        return -cost(measured, TYPICAL_SIZE, weights)

    return sorted(links, key=price)


def round_trip(link: ChannelLink) -> Micros | None:
    """Return the smoothed round-trip time of a link; None while it is unknown."""
    roundtrip = getattr(link.machine, "roundtrip", None)
    return roundtrip.smoothed if roundtrip is not None else None
