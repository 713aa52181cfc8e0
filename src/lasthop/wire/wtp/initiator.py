"""The initiator of a transaction, which sends a request."""

from __future__ import annotations

from enum import Enum, auto

from lasthop.clock import Micros
from lasthop.errors import TooLarge
from lasthop.wire.wtp.message import Incoming, WtpOutgoing
from lasthop.wire.wtp.pdus import (
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
    Event,
    Peer,
    RequestConfirmed,
    Side,
    TransactionAnswered,
    TransactionEnded,
    WtpPatience,
)


class InitiatorPhase(Enum):
    """The state of the initiator of a transaction."""

    ASKING = auto()
    PROMISED = auto()
    """The request was acknowledged; its result is still to come."""
    RECEIVING = auto()
    """The result is arriving in several groups."""
    OVER = auto()
    """The transaction has ended, and is remembered only to acknowledge a repeated result."""
    GONE = auto()


class WtpInitiator(Side):
    """Sends a request until it is acknowledged or answered."""

    __slots__ = ("_message", "_phase", "_result", "_tcl", "_tid_new", "_user_ack")

    def __init__(
        self,
        peer: Peer,
        tid: int,
        data: bytes,
        *,
        tcl: int,
        tid_new: bool,
        user_ack: bool,
        patience: WtpPatience,
        now: Micros,
    ) -> None:
        super().__init__(peer, tid, patience)
        self._tcl = tcl
        self._tid_new = tid_new
        self._user_ack = user_ack
        # Groups of class 0 are never acknowledged: the request goes in one packet or not at all.
        segment = patience.segment if tcl else max(1, len(data))
        self._message = WtpOutgoing(data, self._packet, segment=segment)
        self._result = Incoming(limit=patience.message)
        self._phase = InitiatorPhase.ASKING
        self.out += self._message.group()
        if tcl == 0:
            self._phase = InitiatorPhase.GONE
        else:
            self.progress(now)

    @property
    def gone(self) -> bool:
        """Whether the transaction can be forgotten."""
        return self._phase is InitiatorPhase.GONE

    @property
    def open(self) -> bool:
        """Whether the transaction's outcome is still to come."""
        return self._phase in (
            InitiatorPhase.ASKING,
            InitiatorPhase.PROMISED,
            InitiatorPhase.RECEIVING,
        )

    def _packet(self, psn: int, data: bytes, trailer: Trailer, again: bool) -> Pdu:
        if psn:
            return Segment(self.tid, psn, data, trailer, again=again)
        return Invoke(
            self.tid,
            self._tcl,
            data,
            trailer,
            again,
            tid_new=self._tid_new,
            user_ack=self._user_ack,
        )

    def receive(self, pdu: Pdu, now: Micros) -> list[Event]:
        """Handle a PDU of the responder; return the events that follow."""
        match pdu:
            case Ack(tve=True):
                self._verify(now)
            case Ack():
                return self._acknowledged(pdu, now)
            case NegativeAck():
                if self._phase is InitiatorPhase.ASKING:
                    self.progress(now)
                    self.out += self._message.some(pdu.missing)
            case Abort():
                if self.open:
                    self._phase, self.due = InitiatorPhase.GONE, None
                    return [TransactionEnded(self, pdu.reason, pdu.by_user)]
            case Result():
                return self._packet_of_result(0, pdu.data, pdu.trailer, now)
            case Segment(of_result=True):
                return self._packet_of_result(pdu.psn, pdu.data, pdu.trailer, now)
            case _:
                pass
        return []

    def _verify(self, now: Micros) -> None:
        """Answer whether this number is in use: it is while the transaction is open; an old copy of
        the request must not be served."""
        if self.open:
            self.progress(now)
            self.out.append(Ack(self.tid, tve=True))
        else:
            self.out.append(Abort(self.tid, Provider.INVALID_NUMBER))

    def _acknowledged(self, ack: Ack, now: Micros) -> list[Event]:
        if self._phase is not InitiatorPhase.ASKING:
            return []
        if not self._message.ends_with(ack.psn):
            if ack.psn is not None and (following := self._message.acknowledged(ack.psn)):
                self.progress(now)
                self.out += following
            return []
        if self._tcl == 1:
            self._phase, self.due = InitiatorPhase.GONE, None
            return [RequestConfirmed(self)]
        self._phase = InitiatorPhase.PROMISED
        self.due = now + self.patience.result
        return []

    def _packet_of_result(
        self, psn: int, data: bytes, trailer: Trailer, now: Micros
    ) -> list[Event]:
        if self._tcl != 2 or self._phase is InitiatorPhase.GONE:
            return []
        if self._phase is InitiatorPhase.OVER:
            self.out.append(Ack(self.tid, again=True))
            return []
        self._phase = InitiatorPhase.RECEIVING
        self.due = now + self.patience.result
        try:
            self._result.add(psn, data, trailer)
        except TooLarge:
            self._phase, self.due = InitiatorPhase.GONE, None
            self.out.append(Abort(self.tid, Provider.TOO_LARGE))
            return [TransactionEnded(self, Provider.TOO_LARGE)]
        if trailer is Trailer.MIDDLE:
            return []
        if missing := self._result.missing(psn):
            self.out.append(NegativeAck(self.tid, missing))
            return []
        whole = self._result.whole
        if whole is None:
            self.out.append(Ack(self.tid, psn=psn))
            return []
        self._phase = InitiatorPhase.OVER
        self.due = now + self.patience.memory
        self.out.append(Ack(self.tid))
        return [TransactionAnswered(self, whole)]

    def timeout(self, now: Micros) -> list[Event]:
        """Send the request again, or end the transaction, because its timer has expired."""
        if self._phase is InitiatorPhase.ASKING and self.again(now):
            self.out += self._message.group(again=True)
            return []
        ended = self.open
        if self._phase is InitiatorPhase.ASKING or ended:
            self.out.append(Abort(self.tid, Provider.NO_RESPONSE))
        self._phase, self.due = InitiatorPhase.GONE, None
        return [TransactionEnded(self, Provider.NO_RESPONSE)] if ended else []

    def abort(self, reason: int, *, by_user: bool = True) -> None:
        """End the transaction, with an Abort for the responder; no event follows."""
        if self.open:
            self.out.append(Abort(self.tid, reason, by_user=by_user))
        self._phase, self.due = InitiatorPhase.GONE, None
