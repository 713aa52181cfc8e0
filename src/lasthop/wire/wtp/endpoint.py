"""All transactions of one socket: datagrams in, events out, datagrams to send."""

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
"""Requests that peers have begun. Beyond it they are told to come back later."""

MAX_PER_PEER = 64
"""Of them, with one peer: a client has a handful."""

MAX_PEERS = 200_000
"""Whose last numbers are remembered. To forget one costs a verification, nothing else."""


class Endpoint:
    """One end of any number of transactions with any number of peers."""

    def __init__(self, *, first_tid: int, patience: WtpPatience | None = None) -> None:
        """`first_tid` is far from the numbers of an earlier life: peers still remember those."""
        self._patience = patience or WtpPatience()
        self._first_tid = first_tid % NUMBERS
        self._asked: dict[tuple[Peer, int], WtpInitiator] = {}
        self._asking: dict[tuple[Peer, int], Responder] = {}
        self._busy: dict[Peer, int] = {}
        self._given: dict[Peer, int] = {}
        """The last number that we gave out towards a peer."""
        self._seen: dict[Peer, int] = {}
        """The last number of a peer's own."""
        self._timers: list[tuple[Micros, int, Side]] = []
        self._count = 0
        self._out: list[tuple[bytes, Peer]] = []
        self.malformed = 0
        """Datagrams that were none of ours."""

    # What our user does.

    def invoke(
        self, peer: Peer, data: bytes, *, tcl: int, now: Micros, user_ack: bool = False
    ) -> WtpInitiator:
        """Begin a transaction; `TooLarge` for what no transaction carries."""
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
        """Our user has a request of class 1."""
        assert isinstance(side, Responder)
        side.acknowledge(now)
        self._flush(side)

    def answer(self, side: Side, data: bytes, now: Micros) -> None:
        """Our user's answer to a request of class 2."""
        assert isinstance(side, Responder)
        side.answer(data, now)
        self._flush(side)

    def abort(self, side: Side, reason: int, now: Micros) -> None:
        """Our user gives a transaction up."""
        if isinstance(side, Responder):
            side.abort(reason, now)
        else:
            assert isinstance(side, WtpInitiator)
            side.abort(reason)
        self._flush(side)

    # What the driver does.

    def receive(self, data: bytes, peer: Peer, now: Micros) -> list[Event]:
        """A datagram has come. One that cannot be read is dropped: its sender may not be what it
        seems, and what is lost comes again."""
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
        """What is to be sent now, in this order."""
        out, self._out = self._out, []
        return out

    def next_timeout(self) -> Micros | None:
        """When `timeout` wants to be called."""
        timers = self._timers
        while timers and timers[0][2].due is None:
            heapq.heappop(timers)[2].armed = None
        return timers[0][0] if timers else None

    def timeout(self, now: Micros) -> list[Event]:
        """Time has passed."""
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
        """How many transactions are remembered."""
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
        """Something about a transaction that we do not know: who waits for us need not."""
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
        """Whether the number lies ahead of the last one, so that it cannot be an old one's copy."""
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
    """Newest last, so that the longest silent peer is forgotten first."""
    numbers.pop(peer, None)
    numbers[peer] = tid
    if len(numbers) > MAX_PEERS:
        del numbers[next(iter(numbers))]
