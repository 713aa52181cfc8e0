"""One message in packets: cut by its sender, joined by its receiver.

A message that fits one packet is not cut. Otherwise packets go in groups; the next group is sent
when the last packet of this one is acknowledged. Both ends count packets from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lasthop.errors import TooLarge
from lasthop.wire.wtp.pdus import Pdu, Trailer

SEGMENT = 1400
"""The largest number of octets of data in a packet: with all headers it fits an Ethernet frame."""

GROUP = 4
"""The number of packets in a group: few enough for a slow link to carry at once."""

MAX_PACKETS = 256
"""The largest number of packets of a message: a packet's number has one octet."""

MAX_MESSAGE = SEGMENT * MAX_PACKETS
"""The largest number of octets in a message: a receiver keeps no more than a sender of the usual
packets can send."""

MakePacket = Callable[[int, bytes, Trailer, bool], Pdu]
"""Makes the packet with this number, data and trailer; the last argument is true if it was sent
before."""


class WtpOutgoing:
    """A message that is being sent."""

    __slots__ = ("_group_end", "_group_start", "_make", "_packets")

    def __init__(self, data: bytes, make: MakePacket, *, segment: int = SEGMENT) -> None:
        self._make = make
        count = max(1, -(-len(data) // segment))
        if count > MAX_PACKETS:
            raise TooLarge(
                "the message is too large for a transaction", size=len(data), packets=count
            )
        self._packets = [data[n * segment : (n + 1) * segment] for n in range(count)]
        self._group_start = 0
        self._group_end = min(GROUP, count)

    @property
    def last_group(self) -> bool:
        """Whether the group being sent is the last of the message."""
        return self._group_end == len(self._packets)

    def ends_with(self, psn: int | None) -> bool:
        """Whether an acknowledgement of this packet, or of none in particular, covers the whole
        message. An acknowledgement of an earlier group may come late, or twice."""
        return self.last_group and psn in (None, len(self._packets) - 1)

    def group(self, *, again: bool = False) -> list[Pdu]:
        """Return the packets of the group being sent."""
        return [self._packet(n, again=again) for n in range(self._group_start, self._group_end)]

    def some(self, numbers: Sequence[int]) -> list[Pdu]:
        """Return the packets of the group that the receiver lacks; if none is named, the first."""
        missing = numbers or (0,)
        return [
            self._packet(n, again=True)
            for n in sorted(set(missing))
            if self._group_start <= n < self._group_end
        ]

    def acknowledged(self, psn: int) -> list[Pdu]:
        """Return the next group, if the acknowledged packet is the last of the present one;
        otherwise nothing."""
        if psn != self._group_end - 1 or self.last_group:
            return []
        self._group_start = self._group_end
        self._group_end = min(self._group_start + GROUP, len(self._packets))
        return self.group()

    def _packet(self, n: int, *, again: bool) -> Pdu:
        if n == len(self._packets) - 1:
            trailer = Trailer.LAST
        else:
            trailer = Trailer.GROUP if n == self._group_end - 1 else Trailer.MIDDLE
        return self._make(n, self._packets[n], trailer, again)


class Incoming:
    """A message that is being received."""

    __slots__ = ("_last", "_limit", "_packets", "_size")

    def __init__(self, *, limit: int = MAX_MESSAGE) -> None:
        self._packets: dict[int, bytes] = {}
        self._last: int | None = None
        self._limit = limit
        self._size = 0

    def add(self, psn: int, data: bytes, trailer: Trailer) -> None:
        """Handle a received packet; raise TooLarge when the packets together exceed the limit."""
        if psn in self._packets:
            return
        self._size += len(data)
        if self._size > self._limit:
            raise TooLarge("a message is too large", limit=self._limit)
        self._packets[psn] = data
        if trailer in (Trailer.LAST, Trailer.ALONE):
            self._last = psn

    def missing(self, until: int) -> tuple[int, ...]:
        """Return the numbers of the packets up to this one that have not arrived."""
        return tuple(n for n in range(until + 1) if n not in self._packets)

    @property
    def whole(self) -> bytes | None:
        """The message, once every packet has arrived; None before."""
        if self._last is None or len(self._packets) <= self._last:
            return None
        return b"".join(_in_order(self._packets, self._last))


def _in_order(packets: dict[int, bytes], last: int) -> Iterable[bytes]:
    return (packets[n] for n in range(last + 1))
