"""A model of TCP over two pipes: the time and octets of opening, speeding up and acknowledging.

IPv4 and TCP headers have 52 octets (timestamps included), 60 with the options of a SYN, and
segments at most 1448 octets of data. Three segments open a connection; the client's first data
follow the third at once. The initial window is ten segments (RFC 6928) and grows by what is
acknowledged (slow start, RFC 5681), or by a segment for each window above the threshold. Every
second segment is acknowledged at once, a single one after 40 ms unless data go back before. Three
duplicate acknowledgements, or a timeout (RFC 6298, at least 200 ms; one second for a SYN), cause a
retransmission and halve the window. Small writes are not held back (TCP_NODELAY). Closing takes a
FIN and an acknowledgement in each direction. Receivers' windows, and checks that fail, are left
out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bench.exchange.pipe import Pipe
from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.simulation.kernel import Kernel

HEADERS: Final = 52
SYN: Final = 60
SEGMENT: Final = 1448
INITIAL_WINDOW: Final = 10 * SEGMENT
DELAYED: Final = 40 * MILLISECOND
LEAST_TIMEOUT: Final = 200 * MILLISECOND
MOST_TIMEOUT: Final = 60 * SECOND
SYN_TIMEOUT: Final = SECOND


class End:
    """One end of a connection; `arrived` is called with the octets of the other end in their
    order."""

    def __init__(self, kernel: Kernel, out: Pipe, arrived: Callable[[bytes], None]) -> None:
        self._kernel = kernel
        self._out = out
        self.arrived = arrived
        self.peer: End | None = None
        # State of the sender.
        self._unsent = bytearray()
        self._flight: dict[int, tuple[bytes, Micros, bool]] = {}  # data, when, sent again
        self._next = self._acknowledged = 0
        self._window: float = INITIAL_WINDOW
        self._threshold = float("inf")
        self._duplicates = 0
        self._smoothed: float | None = None
        self._variation = 0.0
        self._backoff = 0
        self._timer = 0
        # State of the receiver.
        self._expected = 0
        self._ahead: dict[int, bytes] = {}
        self._owed = 0
        self._owed_since = 0
        self.is_open = False

    def write(self, data: bytes) -> None:
        """Send these octets, as soon as the window allows."""
        self._unsent += data
        if self.is_open:
            self._send()

    def opened(self, elapsed: Micros | None = None) -> None:
        """Note that the handshake is over at this end, and its duration unless a part of it was
        repeated."""
        self.is_open = True
        if elapsed is not None:
            self._measure(elapsed)
        self._send()

    def _send(self) -> None:
        while self._unsent and self._next - self._acknowledged < self._window:
            data = bytes(self._unsent[:SEGMENT])
            del self._unsent[: len(data)]
            self._transmit(self._next, data, again=False)
            self._next += len(data)

    def _transmit(self, seq: int, data: bytes, *, again: bool) -> None:
        self._flight[seq] = data, self._kernel.now(), again
        self._owed = 0  # the data segment carries the acknowledgement
        acknowledged = self._expected
        peer = self._the_peer()
        self._out.carry(HEADERS + len(data), lambda: peer.data(seq, data, acknowledged))
        self._arm()

    def data(self, seq: int, data: bytes, acknowledged: int) -> None:
        """Handle a segment of the other end that has arrived."""
        if not self.is_open:
            self.opened()  # the third segment of the handshake was lost
        self.acknowledge(acknowledged, pure=False)
        if seq != self._expected:
            if seq > self._expected:
                self._ahead[seq] = data
            self._send_acknowledgement()
            return
        whole = data
        self._expected += len(data)
        while (more := self._ahead.pop(self._expected, None)) is not None:
            whole += more
            self._expected += len(more)
        self._owed += 1
        if self._owed >= 2 or self._ahead:
            self._send_acknowledgement()
        else:
            self._owed_since += 1
            number = self._owed_since
            self._kernel.after(DELAYED, lambda: self._delayed(number))
        self.arrived(whole)

    def _delayed(self, number: int) -> None:
        if self._owed and number == self._owed_since:
            self._send_acknowledgement()

    def _send_acknowledgement(self) -> None:
        self._owed = 0
        acknowledged = self._expected
        peer = self._the_peer()
        self._out.carry(HEADERS, lambda: peer.acknowledge(acknowledged, pure=True))

    def acknowledge(self, acknowledged: int, *, pure: bool) -> None:
        """Handle an acknowledgement of everything below a sequence number."""
        if acknowledged == self._acknowledged:
            if pure and self._flight:
                self._duplicates += 1
                if self._duplicates == 3:
                    self._lost(timeout=False)
            return
        gained = acknowledged - self._acknowledged
        if gained < 0:
            return
        self._acknowledged = acknowledged
        self._duplicates = 0
        for seq in [seq for seq in self._flight if seq < acknowledged]:
            _, sent, again = self._flight.pop(seq)
            if not again:
                self._measure(self._kernel.now() - sent)
        if self._window < self._threshold:
            self._window += min(gained, 2 * SEGMENT)
        else:
            self._window += SEGMENT * gained / self._window
        self._arm()
        self._send()

    def _measure(self, elapsed: Micros) -> None:
        self._backoff = 0  # RFC 6298, 5.7: only segments that were sent once measure the round trip
        if self._smoothed is None:
            self._smoothed, self._variation = elapsed, elapsed / 2
        else:
            self._variation += (abs(self._smoothed - elapsed) - self._variation) / 4
            self._smoothed += (elapsed - self._smoothed) / 8

    def _timeout(self) -> Micros:
        wait = SECOND
        if self._smoothed is not None:
            wait = max(LEAST_TIMEOUT, int(self._smoothed + 4 * self._variation))
        return min(wait << self._backoff, MOST_TIMEOUT)

    def _arm(self) -> None:
        self._timer += 1
        if self._flight:
            number = self._timer
            self._kernel.after(self._timeout(), lambda: self._expire(number))

    def _expire(self, number: int) -> None:
        if number == self._timer and self._flight:
            self._lost(timeout=True)

    def _lost(self, *, timeout: bool) -> None:
        flight = self._next - self._acknowledged
        self._threshold = max(flight / 2, 2 * SEGMENT)
        self._window = SEGMENT if timeout else self._threshold
        self._backoff += timeout
        seq = min(self._flight)
        self._transmit(seq, self._flight[seq][0], again=True)

    def _the_peer(self) -> End:
        if self.peer is None:
            raise RuntimeError("an end has no peer")
        return self.peer


class Connection:
    """Both ends of a connection, from the SYN on; `client` may be written to at once."""

    def __init__(
        self,
        kernel: Kernel,
        up: Pipe,
        down: Pipe,
        *,
        to_client: Callable[[bytes], None],
        to_server: Callable[[bytes], None],
    ) -> None:
        self._kernel = kernel
        self._up, self._down = up, down
        self.client = End(kernel, up, to_client)
        self.server = End(kernel, down, to_server)
        self.client.peer, self.server.peer = self.server, self.client
        self._tries = 0
        self._began = kernel.now()
        self._answered = kernel.now()
        self._syn()

    def _syn(self) -> None:
        if self.client.is_open:
            return
        self._up.carry(SYN, self._syn_arrived)
        self._kernel.after(SYN_TIMEOUT << self._tries, self._syn)
        self._tries += 1

    def _syn_arrived(self) -> None:
        if not self.server.is_open:
            self._answered = self._kernel.now()
            self._down.carry(SYN, self._established)
            self._kernel.after(SYN_TIMEOUT << self._tries, self._syn_arrived)

    def _established(self) -> None:
        # The third segment. If it is lost, the first data do the same.
        self._up.carry(HEADERS, self._accepted)
        if not self.client.is_open:
            self.client.opened(self._since(self._began))

    def _accepted(self) -> None:
        if not self.server.is_open:
            self.server.opened(self._since(self._answered))

    def _since(self, time: Micros) -> Micros | None:
        return self._kernel.now() - time if self._tries == 1 else None

    def close(self) -> None:
        """Close both ends, without waiting for the acknowledgements."""
        for pipe in (self._up, self._down, self._up, self._down):
            pipe.carry(HEADERS, lambda: None)
