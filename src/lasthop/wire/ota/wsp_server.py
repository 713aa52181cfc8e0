"""WSP sessions on the gateway's side: clients open them, and pushes are sent within them.

A session accepts pushes if both ends agreed on it when it was opened, and a limited number of
confirmed ones at a time. Every push ends in exactly one event. Sessions are found by the host of
their client, which is all that WAP knows of its identity.
"""

from __future__ import annotations

from collections.abc import Collection

from lasthop.clock import Micros
from lasthop.errors import Malformed, TooLarge
from lasthop.wire.ota.wsp_session import (
    CONGESTION,
    CONNECTERR,
    DISCONNECT,
    MOREXCEEDED,
    PROTOERR,
    SUSPEND,
    USERREQ,
    Address,
    Event,
    NotSent,
    Pushed,
    PushRefused,
    PushUnanswered,
    SessionClosed,
    SessionOpened,
    Ticket,
    WspSession,
    described,
)
from lasthop.wire.wsp.capabilities import (
    DEFAULT_OUTSTANDING,
    DEFAULT_SDU_SIZE,
    Capabilities,
    WspOptions,
)
from lasthop.wire.wsp.pdus import (
    Connect,
    ConnectReply,
    Disconnect,
    Reply,
    Resume,
    Suspend,
    decode_pdu,
    encode_pdu,
)
from lasthop.wire.wtp import transaction as wtp
from lasthop.wire.wtp.endpoint import Endpoint
from lasthop.wire.wtp.message import MAX_MESSAGE
from lasthop.wire.wtp.pdus import Provider
from lasthop.wire.wtp.transaction import Side, WtpPatience

OFFERED = WspOptions.CONFIRMED_PUSH | WspOptions.PUSH | WspOptions.SESSION_RESUME

MOST_OUTSTANDING = 16
"""The largest number of confirmed pushes on their way in one session, however many its client
accepts."""

MAX_SESSIONS = 100_000
"""The largest number of sessions. The oldest is forgotten first; its client is asked to open
another when there is a push."""

_OK, _NOT_FOUND = 0x20, 0x44
"""The statuses 200 and 404 of HTTP, in WSP's one octet."""


class SessionServer:
    """All WSP sessions of one socket, at the gateway."""

    def __init__(
        self, *, first_tid: int, first_session: int, patience: WtpPatience | None = None
    ) -> None:
        """Start without sessions. Numbers should start far from those before a restart, so that no
        client resumes another's session."""
        self._wtp = Endpoint(first_tid=first_tid, patience=patience)
        self._next = first_session
        self._sessions: dict[int, WspSession] = {}
        self._by_host: dict[str, WspSession] = {}
        self._tickets: dict[Side, Ticket] = {}

    def session(self, host: str) -> WspSession | None:
        """Return the session of the client at this host; None if there is none."""
        return self._by_host.get(host)

    def __len__(self) -> int:
        return len(self._sessions)

    # For the driver.

    def receive(self, data: bytes, peer: Address, now: Micros) -> list[Event]:
        """Handle a received datagram; return the events that follow."""
        return self._act(self._wtp.receive(data, peer, now), now)

    def datagrams(self) -> list[tuple[bytes, Address]]:
        """Return the datagrams to send now; each is returned once."""
        return self._wtp.datagrams()  # type: ignore[return-value]

    def next_timeout(self) -> Micros | None:
        """Return when to call `timeout`; None if no timer runs."""
        return self._wtp.next_timeout()

    def timeout(self, now: Micros) -> list[Event]:
        """Send what is due again, and return the events that follow."""
        return self._act(self._wtp.timeout(now), now)

    # For the carrier.

    def push(self, session: WspSession, pdu: bytes, now: Micros) -> None:
        """Send Po-Push: an unconfirmed push, for which no event follows."""
        self._wtp.invoke(session.peer, pdu, tcl=0, now=now)

    def push_confirmed(self, session: WspSession, pdu: bytes, now: Micros) -> Ticket:
        """Queue Po-ConfirmedPush, which is sent within the number that the client accepts at a
        time; raise TooLarge if no transaction can carry it."""
        if len(pdu) > MAX_MESSAGE:
            raise TooLarge(
                "the message is too large for a transaction", size=len(pdu), limit=MAX_MESSAGE
            )
        ticket = Ticket(session, pdu)
        session.waiting.append(ticket)
        self._proceed(session, now)
        return ticket

    def waits(self, ticket: Ticket) -> bool:
        """Return whether a confirmed push waits for its turn, so that nothing of it was sent."""
        return ticket in ticket.session.waiting

    def withdraw(self, tickets: Collection[Ticket], now: Micros) -> set[Ticket]:
        """Stop sending these pushes; return those of which nothing was sent.

        Those that wait are removed first: the end of one that is on its way makes room for the
        next.
        """
        unsent = {ticket for ticket in tickets if self.waits(ticket)}
        for ticket in unsent:
            ticket.session.waiting.remove(ticket)
        for session in dict.fromkeys(ticket.session for ticket in tickets):
            for side in [s for s in session.under_way if self._tickets[s] in tickets]:
                self._over(side, now)
                self._wtp.abort(side, USERREQ, now)
        return unsent

    def _proceed(self, session: WspSession, now: Micros) -> None:
        while session.waiting and len(session.under_way) < session.most:
            ticket = session.waiting.popleft()
            side = self._wtp.invoke(session.peer, ticket.pdu, tcl=1, now=now, user_ack=True)
            session.under_way[side] = None
            self._tickets[side] = ticket

    # Events of transactions.

    def _act(self, events: list[wtp.Event], now: Micros) -> list[Event]:
        out: list[Event] = []
        for event in events:
            match event:
                case wtp.Invoked():
                    out += self._invoked(event, now)
                case wtp.RequestConfirmed():
                    ticket = self._over(event.side, now)
                    out += [Pushed(ticket)] if ticket else []
                case wtp.TransactionEnded():
                    ticket = self._over(event.side, now)
                    out += [_ended(ticket, event)] if ticket else []
                case _:
                    pass
        return out

    def _over(self, side: Side, now: Micros) -> Ticket | None:
        """Note that a confirmed push has ended, and send the next one; return its ticket."""
        ticket = self._tickets.pop(side, None)
        if ticket is not None:
            ticket.session.under_way.pop(side, None)
            self._proceed(ticket.session, now)
        return ticket

    def _invoked(self, event: wtp.Invoked, now: Micros) -> list[Event]:
        side = event.side
        try:
            pdu = decode_pdu(event.data)
        except (Malformed, TooLarge):
            if event.tcl:
                self._wtp.abort(side, PROTOERR, now)
            return []
        match pdu:
            case Connect() if event.tcl == 2:
                return self._connect(side, pdu, now)
            case Resume() if event.tcl == 2:
                return self._resume(side, pdu, now)
            case Suspend():
                return self._suspend(side, pdu.session, now)
            case Disconnect():
                return self._disconnect(side, pdu.session, now)
            case _:
                if event.tcl:
                    self._wtp.abort(side, PROTOERR, now)
                return []

    def _connect(self, side: Side, connect: Connect, now: Micros) -> list[Event]:
        try:
            session = self._agreed(side, connect)
        except (Malformed, ValueError):
            self._wtp.abort(side, CONNECTERR, now)
            return []
        events = self._replace(session, now)
        reply = ConnectReply(session.number, _granted(connect.capabilities, session))
        self._wtp.answer(side, encode_pdu(reply), now)
        return [*events, SessionOpened(session)]

    def _agreed(self, side: Side, connect: Connect) -> WspSession:
        wanted = connect.capabilities
        terminal, applications = described(connect.headers)
        self._next += 1
        return WspSession(
            self._next,
            _address(side),
            terminal,
            applications,
            (wanted.options or WspOptions(0)) & OFFERED,
            max(1, min(wanted.push_outstanding or DEFAULT_OUTSTANDING, MOST_OUTSTANDING)),
            DEFAULT_SDU_SIZE if wanted.client_sdu_size is None else wanted.client_sdu_size,
        )

    def _replace(self, session: WspSession, now: Micros) -> list[Event]:
        """Register a new session. A client has one session: one that opens a new session has lost
        the old one."""
        events: list[Event] = []
        old = self._by_host.get(session.peer[0])
        if old is not None:
            events += self._end(old, "the client opened another session", now)
        if len(self._sessions) >= MAX_SESSIONS:
            oldest = next(iter(self._sessions.values()))
            events += self._end(oldest, "too many sessions", now)
        self._sessions[session.number] = session
        self._by_host[session.peer[0]] = session
        return events

    def _resume(self, side: Side, resume: Resume, now: Micros) -> list[Event]:
        """Resume the session of a client, which may have another address now."""
        session = self._sessions.get(resume.session)
        if session is None or not session.options & WspOptions.SESSION_RESUME:
            self._wtp.answer(side, encode_pdu(Reply(_NOT_FOUND)), now)
            return []
        events: list[Event] = []
        peer = _address(side)
        if peer[0] != session.peer[0]:
            other = self._by_host.get(peer[0])
            if other is not None:
                events += self._end(other, "the client opened another session", now)
            events += self._orphans(session, "the client has moved", now)
            self._by_host.pop(session.peer[0], None)
            self._by_host[peer[0]] = session
        session.peer = peer
        session.suspended = False
        self._wtp.answer(side, encode_pdu(Reply(_OK)), now)
        return [*events, SessionOpened(session)]

    def _suspend(self, side: Side, number: int, now: Micros) -> list[Event]:
        session = self._sessions.get(number)
        if session is None or session.peer[0] != _address(side)[0] or session.suspended:
            return []
        if not session.options & WspOptions.SESSION_RESUME:
            return self._end(session, "the client suspended the session", now)
        session.suspended = True
        return [
            *self._orphans(session, "the client suspended the session", now),
            SessionClosed(session),
        ]

    def _disconnect(self, side: Side, number: int, now: Micros) -> list[Event]:
        session = self._sessions.get(number)
        if session is None or session.peer[0] != _address(side)[0]:
            return []
        return self._end(session, "the client closed the session", now)

    def _end(self, session: WspSession, reason: str, now: Micros) -> list[Event]:
        del self._sessions[session.number]
        if self._by_host.get(session.peer[0]) is session:
            del self._by_host[session.peer[0]]
        session.suspended = True
        return [*self._orphans(session, reason, now), SessionClosed(session)]

    def _orphans(self, session: WspSession, reason: str, now: Micros) -> list[Event]:
        """End the pushes of a session that accepts none any more; return their events."""
        events: list[Event] = []
        for side in session.under_way:
            events.append(PushUnanswered(self._tickets.pop(side), reason))
            self._wtp.abort(side, DISCONNECT, now)
        events += [NotSent(ticket, reason) for ticket in session.waiting]
        session.under_way.clear()
        session.waiting.clear()
        return events


def _address(side: Side) -> Address:
    assert isinstance(side.peer, tuple)
    host, port = side.peer
    return host, port


def _granted(wanted: Capabilities, session: WspSession) -> Capabilities:
    """Return the capabilities that we agree to, of those that the client named."""
    return Capabilities(
        client_sdu_size=wanted.client_sdu_size,
        server_sdu_size=wanted.server_sdu_size,
        options=None if wanted.options is None else session.options,
        method_outstanding=None if wanted.method_outstanding is None else 1,
        push_outstanding=None if wanted.push_outstanding is None else session.most,
    )


def _ended(ticket: Ticket, event: wtp.TransactionEnded) -> Event:
    """Return what the end of a transaction without a confirmation means for its push."""
    if event.by_user:
        if event.reason in (DISCONNECT, SUSPEND, CONGESTION, MOREXCEEDED):
            return NotSent(ticket, f"the client could not accept it ({event.reason:#04x})")
        return PushRefused(ticket, event.reason)
    if event.reason in (Provider.NO_SEGMENTS, Provider.TOO_LARGE):
        return NotSent(ticket, "the client accepts no message of this size", too_large=True)
    if event.reason == Provider.CAPACITY:
        return NotSent(ticket, "the client has no room for a transaction")
    return PushUnanswered(ticket, _REASONS.get(event.reason, "the transaction failed"))


_REASONS: dict[int, str] = {
    Provider.NO_RESPONSE: "no response",
    Provider.NO_USER_ACK: "no response of the application",
    Provider.INVALID_NUMBER: "the client does not know the transaction",
    Provider.PROTOCOL_ERROR: "the client reports a protocol error",
}
