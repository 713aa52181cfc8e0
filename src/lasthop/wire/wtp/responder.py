"""The responder of a transaction, which gets a request.

A responder remembers a transaction beyond its end: while the initiator may still repeat its
request, a repetition must not be taken for a new one.
"""

from __future__ import annotations

from enum import Enum, auto

from lasthop.clock import Micros
from lasthop.errors import TooLarge
from lasthop.wire.wtp.message import Incoming, WtpOutgoing
from lasthop.wire.wtp.pdus import (
    RESPONDER,
    Abort,
    Ack,
    Invoke,
    NegativeAck,
    Pdu,
    Provider,
    Result,
    Segment,
    Trailer,
)
from lasthop.wire.wtp.transaction import (
    Delivered,
    Event,
    Invoked,
    Peer,
    Side,
    TransactionEnded,
    WtpPatience,
)


class Phase(Enum):
    """The state of the responder of a transaction."""

    VERIFYING = auto()
    """The initiator is asked whether the number is in use; until it answers, the request is kept
    and not handed to the user."""
    RECEIVING = auto()
    WITH_USER = auto()
    ANSWERING = auto()
    """The result is being sent to the initiator."""
    OVER = auto()
    """The transaction has ended, and is remembered so that a repetition gets the same answer."""
    GONE = auto()


class Responder(Side):
    """Takes in a request, and sends what its user answers."""

    __slots__ = ("_aborted", "_answer", "_group_end", "_phase", "_request", "_tcl")

    def __init__(
        self, peer: Peer, invoke: Invoke, *, verify: bool, patience: WtpPatience, now: Micros
    ) -> None:
        super().__init__(peer, invoke.tid, patience)
        self._tcl = invoke.tcl
        self._request = Incoming(limit=patience.message)
        self._answer: WtpOutgoing | None = None
        self._group_end: int | None = None
        """The last packet of a group that arrived while the number was being verified; None if none
        did."""
        self._aborted: Abort | None = None
        self._phase = Phase.VERIFYING if verify else Phase.RECEIVING
        self.due = now + patience.memory

    @property
    def _own(self) -> int:
        return self.tid | RESPONDER

    @property
    def gone(self) -> bool:
        """Whether the transaction can be forgotten."""
        return self._phase is Phase.GONE

    def receive(self, pdu: Pdu, now: Micros) -> list[Event]:
        """Handle a PDU of the initiator; return the events that follow."""
        match pdu:
            case Invoke():
                return self._packet(0, pdu.data, pdu.trailer, now)
            case Segment(of_result=False):
                return self._packet(pdu.psn, pdu.data, pdu.trailer, now)
            case Ack(tve=True):
                if self._phase is Phase.VERIFYING:
                    self._phase = Phase.RECEIVING
                    return self._look(self._group_end, now)
            case Ack():
                return self._acknowledged(pdu, now)
            case NegativeAck():
                if self._phase is Phase.ANSWERING and self._answer is not None:
                    self.progress(now)
                    self.out += self._answer.some(pdu.missing)
            case Abort():
                if self._phase in (Phase.WITH_USER, Phase.ANSWERING):
                    # The user has the request already: a late copy of it must not count as new.
                    self._phase, self.due = Phase.OVER, now + self.patience.memory
                    return [TransactionEnded(self, pdu.reason, pdu.by_user)]
                if self._phase is not Phase.OVER:
                    self._phase, self.due = Phase.GONE, None
            case _:
                pass
        return []

    def _packet(self, psn: int, data: bytes, trailer: Trailer, now: Micros) -> list[Event]:
        if self._phase in (Phase.VERIFYING, Phase.RECEIVING):
            self.due = now + self.patience.memory
            try:
                self._request.add(psn, data, trailer)
            except TooLarge:
                self._refuse(Provider.TOO_LARGE, now)
                return []
            if self._phase is Phase.VERIFYING:
                if psn == 0:
                    self.out.append(Ack(self._own, tve=True))
                if trailer is not Trailer.MIDDLE:
                    self._group_end = psn
                return []
            return self._look(psn if trailer is not Trailer.MIDDLE else None, now)
        if psn == 0 or trailer is not Trailer.MIDDLE:
            self._repeat(psn, trailer)
        return []

    def _look(self, trailer_at: int | None, now: Micros) -> list[Event]:
        """Hand the request to the user if it is complete; otherwise acknowledge a group that has
        just ended, or ask for its missing packets."""
        whole = self._request.whole
        if whole is not None:
            self._phase = Phase.WITH_USER
            self.due = now + self.patience.memory
            return [Invoked(self, whole, self._tcl)]
        if trailer_at is not None:
            missing = self._request.missing(trailer_at)
            if missing:
                self.out.append(NegativeAck(self._own, missing))
            else:
                self.out.append(Ack(self._own, psn=trailer_at))
        return []

    def _repeat(self, psn: int, trailer: Trailer) -> None:
        """Answer a repeated request: the first answer was lost, or has not been sent yet."""
        if self._aborted is not None:
            self.out.append(self._aborted)
        elif trailer is Trailer.GROUP:
            self.out.append(Ack(self._own, psn=psn))
        elif self._phase is Phase.ANSWERING and self._answer is not None:
            self.out += self._answer.group(again=True)
        elif self._phase is Phase.OVER and self._tcl == 1:
            self.out.append(Ack(self._own, again=True))
        elif self._phase is Phase.WITH_USER and self._tcl == 2:
            self.out.append(Ack(self._own, again=True))  # The request is here: wait for the result.

    # For the user.

    def acknowledge(self, now: Micros) -> None:
        """Acknowledge a request of class 1 for the user."""
        if self._phase is Phase.WITH_USER:
            self._phase = Phase.OVER
            self.due = now + self.patience.memory
            self.out.append(Ack(self._own))

    def answer(self, data: bytes, now: Micros) -> None:
        """Send the user's result of a request of class 2."""
        if self._phase is Phase.WITH_USER and self._tcl == 2:
            self._answer = WtpOutgoing(data, self._packet_of_answer, segment=self.patience.segment)
            self._phase = Phase.ANSWERING
            self.progress(now)
            self.out += self._answer.group()

    def abort(self, reason: int, now: Micros) -> None:
        """Refuse the request for the user, with this reason."""
        if self._phase in (Phase.WITH_USER, Phase.ANSWERING):
            self._refuse(reason, now, by_user=True)

    def _refuse(self, reason: int, now: Micros, *, by_user: bool = False) -> None:
        self._aborted = Abort(self._own, reason, by_user=by_user)
        self._phase = Phase.OVER
        self.due = now + self.patience.memory
        self.out.append(self._aborted)

    def _packet_of_answer(self, psn: int, data: bytes, trailer: Trailer, again: bool) -> Pdu:
        if psn:
            return Segment(self._own, psn, data, trailer, of_result=True, again=again)
        return Result(self._own, data, trailer, again)

    def _acknowledged(self, ack: Ack, now: Micros) -> list[Event]:
        if self._phase is not Phase.ANSWERING or self._answer is None:
            return []
        if not self._answer.ends_with(ack.psn):
            if ack.psn is not None and (following := self._answer.acknowledged(ack.psn)):
                self.progress(now)
                self.out += following
            return []
        self._phase = Phase.OVER
        self.due = now + self.patience.memory
        return [Delivered(self)]

    def timeout(self, now: Micros) -> list[Event]:
        """Send the result again, or end the transaction, because its timer has expired."""
        if self._phase is Phase.ANSWERING and self._answer is not None:
            if self.again(now):
                self.out += self._answer.group(again=True)
                return []
            self._refuse(Provider.NO_RESPONSE, now)
            return [TransactionEnded(self, Provider.NO_RESPONSE)]
        if self._phase is Phase.WITH_USER:
            self._refuse(Provider.NO_USER_ACK, now)
            return [TransactionEnded(self, Provider.NO_USER_ACK)]
        self._phase, self.due = Phase.GONE, None
        return []
