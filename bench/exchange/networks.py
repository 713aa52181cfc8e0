"""The three networks of table 7.2.

Round trips are those of the table (minimum, average, maximum). The thesis does not give rates and
losses; ours are what such networks had: Fast Ethernet, 802.11b with half of its 11 Mbit/s left for
payload and an occasional loss, GPRS with four slots down and two up in CS-2, which loses nothing
that its link layer does not bring again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from lasthop.clock import MILLISECOND, Micros


class Network(NamedTuple):
    """A network between client and server."""

    name: str
    round_trip: tuple[Micros, Micros, Micros]
    """Round trip of an empty packet: the least, the average, and the most."""
    up: int
    """Bits per second from the client."""
    down: int
    loss: float
    """Share of the packets that are lost, in either direction."""


NETWORKS: Final = (
    Network("LAN", (100, 110, 200), 100_000_000, 100_000_000, 0.0),
    Network(
        "WLAN",
        (2_800, 3_700, 21_100),
        5_500_000,
        5_500_000,
        0.002,
    ),
    Network(
        "GPRS",
        (690 * MILLISECOND, 830 * MILLISECOND, 1330 * MILLISECOND),
        26_800,
        53_600,
        0.0,
    ),
)
