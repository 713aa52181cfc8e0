"""One message in packets: cut by its sender, put together by its receiver.

What fits one packet is not cut. Otherwise packets go in groups; the next group leaves when the last
packet of this one is acknowledged. Both ends count packets from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lasthop.errors import TooLarge
from lasthop.wire.wtp.pdus import Pdu, Trailer

SEGMENT = 1400
"""Octets of a packet's data: with all headers it fits an Ethernet frame."""

GROUP = 4
"""Packets in a group: little enough for a slow link to take at once."""

MAX_PACKETS = 256
"""A packet's number has one octet."""

MAX_MESSAGE = SEGMENT * MAX_PACKETS
"""Octets. A receiver keeps no more of one message than a sender of the usual packets can send."""

MakePacket = Callable[[int, bytes, Trailer, bool], Pdu]
"""Makes the packet of this number, with this data; true if it was sent before."""


class WtpOutgoing:
    """A message being sent."""

    __slots__ = ("_group_end", "_group_start", "_make", "_packets")

    def __init__(self, data: bytes, make: MakePacket, *, segment: int = SEGMENT) -> None:
        self._make = make
        count = max(1, -(-len(data) // segment))
        if count > MAX_PACKETS:
            raise TooLarge("too large for a transaction", size=len(data), packets=count)
        self._packets = [data[n * segment : (n + 1) * segment] for n in range(count)]
        self._group_start = 0
        self._group_end = min(GROUP, count)

    @property
    def last_group(self) -> bool:
        """Whether what is under way is the end of the message."""
        return self._group_end == len(self._packets)

    def ends_with(self, psn: int | None) -> bool:
        """Whether an acknowledgement of this packet, or of none in particular, is one of the whole
        message. One of an earlier group may come late, or twice."""
        return self.last_group and psn in (None, len(self._packets) - 1)

    def group(self, *, again: bool = False) -> list[Pdu]:
        """The packets that are under way."""
        return [self._packet(n, again=again) for n in range(self._group_start, self._group_end)]

    def some(self, numbers: Sequence[int]) -> list[Pdu]:
        """Those packets of the group that the receiver misses; none named: the first."""
        missing = numbers or (0,)
        return [
            self._packet(n, again=True)
            for n in sorted(set(missing))
            if self._group_start <= n < self._group_end
        ]

    def acknowledged(self, psn: int) -> list[Pdu]:
        """The group that ends with this packet has come; the next one."""
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
    """A message being received."""

    __slots__ = ("_last", "_limit", "_packets", "_size")

    def __init__(self, *, limit: int = MAX_MESSAGE) -> None:
        self._packets: dict[int, bytes] = {}
        self._last: int | None = None
        self._limit = limit
        self._size = 0

    def add(self, psn: int, data: bytes, trailer: Trailer) -> None:
        """A packet has come; `TooLarge` when all of them are."""
        if psn in self._packets:
            return
        self._size += len(data)
        if self._size > self._limit:
            raise TooLarge("a message is too large", limit=self._limit)
        self._packets[psn] = data
        if trailer in (Trailer.LAST, Trailer.ALONE):
            self._last = psn

    def missing(self, until: int) -> tuple[int, ...]:
        """Packets up to this one that have not come."""
        return tuple(n for n in range(until + 1) if n not in self._packets)

    @property
    def whole(self) -> bytes | None:
        """The message, once every packet is there."""
        if self._last is None or len(self._packets) <= self._last:
            return None
        return b"".join(_in_order(self._packets, self._last))


def _in_order(packets: dict[int, bytes], last: int) -> Iterable[bytes]:
    return (packets[n] for n in range(last + 1))
