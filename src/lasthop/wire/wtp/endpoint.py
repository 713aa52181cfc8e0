"""All transactions of one socket: takes in datagrams, returns events and datagrams to send."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from lasthop.clock import Micros
from lasthop.errors import Malformed, TooLarge
from lasthop.wire.wtp.initiator import WtpInitiator
from lasthop.wire.wtp.pdus import (
    NUMBERS,
    RESPONDER,
    Abort,
    Invoke,
    Pdu,
    Provider,
    decode_datagram,
    encode_pdu,
)
from lasthop.wire.wtp.responder import Responder
from lasthop.wire.wtp.transaction import Event, Invoked, Peer, Side, WtpPatience

MAX_TRANSACTIONS = 100_000
"""The largest number of transactions that peers have begun; beyond it requests are refused for the
time being."""

MAX_PER_PEER = 64
"""The largest number of transactions that one peer has begun: a client has a handful."""

MAX_PEERS = 200_000
"""The largest number of peers whose last transaction number is remembered. Forgetting one only
costs a verification."""


class Endpoint:
    """One end of any number of transactions with any number of peers."""

    def __init__(self, *, first_tid: int, patience: WtpPatience | None = None) -> None:
        """Start without transactions. `first_tid` should be far from the numbers before a restart,
        which peers still remember."""
        self._patience = patience or WtpPatience()
        self._first_tid = first_tid % NUMBERS
        self._asked: dict[tuple[Peer, int], WtpInitiator] = {}
        self._asking: dict[tuple[Peer, int], Responder] = {}
        self._busy: dict[Peer, int] = {}
        self._given: dict[Peer, int] = {}
        """The last number of our own transactions, by peer."""
        self._seen: dict[Peer, int] = {}
        """The last number of a peer's transactions, by peer."""
        self._timers: list[tuple[Micros, int, Side]] = []
        self._count = 0
        self._out: list[tuple[bytes, Peer]] = []
        self.malformed = 0
        """The number of datagrams that could not be decoded."""

    # For the user of the transactions.

    def invoke(
        self, peer: Peer, data: bytes, *, tcl: int, now: Micros, user_ack: bool = False
    ) -> WtpInitiator:
        """Begin a transaction with this request; raise TooLarge if no transaction can carry it."""
        last = self._given.get(peer)
        tid = self._first_tid if last is None else (last + 1) % NUMBERS
        while (peer, tid) in self._asked:
            tid = (tid + 1) % NUMBERS
        side = WtpInitiator(
            peer,
            tid,
            data,
            tcl=tcl,
            tid_new=last is None or tid < last,
            user_ack=user_ack,
            patience=self._patience,
            now=now,
        )
        _remember(self._given, peer, tid)
        if not side.gone:
            self._asked[peer, tid] = side
        self._flush(side)
        return side

    def acknowledge(self, side: Side, now: Micros) -> None:
        """Acknowledge a request of class 1 for the user."""
        assert isinstance(side, Responder)
        side.acknowledge(now)
        self._flush(side)

    def answer(self, side: Side, data: bytes, now: Micros) -> None:
        """Send the user's result of a request of class 2."""
        assert isinstance(side, Responder)
        side.answer(data, now)
        self._flush(side)

    def abort(self, side: Side, reason: int, now: Micros) -> None:
        """Abort a transaction for the user, with this reason."""
        if isinstance(side, Responder):
            side.abort(reason, now)
        else:
            assert isinstance(side, WtpInitiator)
            side.abort(reason)
        self._flush(side)

    # For the driver.

    def receive(self, data: bytes, peer: Peer, now: Micros) -> list[Event]:
        """Handle a received datagram and return its events. A datagram that cannot be decoded is
        dropped: its sender may be forged, and what is lost comes again."""
        try:
            pdus = decode_datagram(data)
        except (Malformed, TooLarge):
            self.malformed += 1
            return []
        events: list[Event] = []
        for pdu in pdus:
            events += self._take(pdu, peer, now)
        return events

    def datagrams(self) -> list[tuple[bytes, Peer]]:
        """Return the datagrams to send now, in this order; each is returned once."""
        out, self._out = self._out, []
        return out

    def next_timeout(self) -> Micros | None:
        """Return when to call `timeout`; None if no timer runs."""
        timers = self._timers
        while timers and timers[0][2].due is None:
            heapq.heappop(timers)[2].armed = None
        return timers[0][0] if timers else None

    def timeout(self, now: Micros) -> list[Event]:
        """Send what is due again, and return the events of transactions that are given up."""
        events: list[Event] = []
        while self._timers and self._timers[0][0] <= now:
            side = heapq.heappop(self._timers)[2]
            side.armed = None
            if side.due is None:
                continue
            if side.due > now:
                self._arm(side)
                continue
            assert isinstance(side, WtpInitiator | Responder)
            events += side.timeout(now)
            self._flush(side)
        return events

    @property
    def open(self) -> int:
        """The number of transactions that are remembered."""
        return len(self._asked) + len(self._asking)

    def _take(self, pdu: Pdu, peer: Peer, now: Micros) -> Iterable[Event]:
        tid = pdu.tid & (NUMBERS - 1)
        side: WtpInitiator | Responder | None
        if pdu.tid & RESPONDER:
            side = self._asked.get((peer, tid))
            if side is None:
                self._stranger(pdu, peer, tid)
                return []
        else:
            side = self._asking.get((peer, tid))
            if side is None and isinstance(pdu, Invoke):
                side = self._begin(pdu, peer, now)
            if side is None:
                return [] if not isinstance(pdu, Invoke) else self._unreliable(pdu, peer, now)
        events = side.receive(pdu, now)
        self._flush(side)
        return events

    def _stranger(self, pdu: Pdu, peer: Peer, tid: int) -> None:
        """Abort an unknown transaction, so that the peer does not wait for us."""
        if not isinstance(pdu, Abort):
            self._out.append((encode_pdu(Abort(tid, Provider.INVALID_NUMBER)), peer))

    def _unreliable(self, invoke: Invoke, peer: Peer, now: Micros) -> list[Event]:
        if invoke.tcl != 0:
            return []
        whole = Responder(peer, invoke, verify=False, patience=self._patience, now=now)
        found = whole.receive(invoke, now)
        return [event for event in found if isinstance(event, Invoked)]

    def _begin(self, invoke: Invoke, peer: Peer, now: Micros) -> Responder | None:
        refusal = self._refusal(invoke, peer)
        if refusal is not None:
            self._out.append((encode_pdu(Abort(invoke.tid | RESPONDER, refusal)), peer))
            return None
        if invoke.tcl == 0:
            return None
        verify = invoke.tid_new or not self._is_next(peer, invoke.tid)
        if not verify or invoke.tid_new:
            _remember(self._seen, peer, invoke.tid)
        side = Responder(peer, invoke, verify=verify, patience=self._patience, now=now)
        self._asking[peer, invoke.tid] = side
        self._busy[peer] = self._busy.get(peer, 0) + 1
        return side

    def _refusal(self, invoke: Invoke, peer: Peer) -> Provider | None:
        if invoke.version != 0:
            return Provider.VERSION
        if invoke.tcl > 2:
            return Provider.PROTOCOL_ERROR
        full = len(self._asking) >= MAX_TRANSACTIONS
        if invoke.tcl and (full or self._busy.get(peer, 0) >= MAX_PER_PEER):
            return Provider.CAPACITY
        return None

    def _is_next(self, peer: Peer, tid: int) -> bool:
        """Whether the number is ahead of the peer's last one, so that it cannot be a copy of an old
        one."""
        last = self._seen.get(peer)
        return last is not None and 0 < (tid - last) % NUMBERS < NUMBERS // 2

    def _flush(self, side: Side) -> None:
        for pdu in side.out:
            self._out.append((encode_pdu(pdu), side.peer))
        side.out.clear()
        assert isinstance(side, WtpInitiator | Responder)
        if side.gone:
            self._forget(side)
        else:
            self._arm(side)

    def _arm(self, side: Side) -> None:
        if side.due is not None and (side.armed is None or side.due < side.armed):
            side.armed = side.due
            self._count += 1
            heapq.heappush(self._timers, (side.due, self._count, side))

    def _forget(self, side: WtpInitiator | Responder) -> None:
        at = side.peer, side.tid
        if isinstance(side, WtpInitiator):
            if self._asked.get(at) is side:
                del self._asked[at]
        elif self._asking.get(at) is side:
            del self._asking[at]
            self._busy[side.peer] -= 1
            if not self._busy[side.peer]:
                del self._busy[side.peer]


def _remember(numbers: dict[Peer, int], peer: Peer, tid: int) -> None:
    """Remember a peer's number, newest last, so that the peer that was silent longest is forgotten
    first."""
    numbers.pop(peer, None)
    numbers[peer] = tid
    if len(numbers) > MAX_PEERS:
        del numbers[next(iter(numbers))]
