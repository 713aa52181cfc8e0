"""OTA-WSP in sessions: Po-Push and Po-ConfirmedPush over WTP, and the request to open a session.

A push for a client without a session waits while the client is asked to open one, which it may do
late or never. Sockets and time come from outside, so that a rehearsal runs the same code.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from lasthop.clock import SECOND, Clock, Micros
from lasthop.delivery.carrier import (
    Aborted,
    Confirmed,
    NotReached,
    Outcome,
    Parcel,
    Sent,
    Spent,
    Unanswered,
    Unfit,
    needs_more,
)
from lasthop.delivery.ota.datagrams import MAX_DATAGRAM, Endpoint
from lasthop.delivery.ota.unit import DatagramNetwork, unfit
from lasthop.errors import Rejected, TooLarge, Unsupported
from lasthop.wire.ota import wsp_session as wsp
from lasthop.wire.ota.terminal import described
from lasthop.wire.ota.transform import PushContent, application_of, for_wsp, wsp_headers
from lasthop.wire.ota.wsp_server import SessionServer
from lasthop.wire.ota.wsp_session import Ticket, WspSession
from lasthop.wire.wsp.applications import PUSH_SIA
from lasthop.wire.wsp.headers import Header
from lasthop.wire.wsp.pdus import Push, encode_pdu, encode_unit
from lasthop.wire.wsp.sir import MEDIA_TYPE, Sir, encode_sir

Report: TypeAlias = Callable[[Outcome], None]

ASK_EVERY: Micros = 10 * SECOND
ASK_TIMES = 3
"""The interval and the number of requests for a session. A request is a datagram like any other: it
may be lost, and a client takes some seconds to open a session. After half a minute the client
counts as absent, and a later attempt asks again."""

MOST_COUNTED = 100_000
"""The largest number of hosts whose octets are counted between two outcomes; what is forgotten
beyond that is the count of the host that was heard of longest ago."""


@dataclass(slots=True)
class _Asked:
    """A client that was asked to open a session, and the pushes that wait for it."""

    endpoint: Endpoint
    times: int = 0
    due: Micros = 0
    waiting: list[tuple[Parcel, Report]] = field(default_factory=list)


class SessionCarrier:
    """Pushes to clients within WSP sessions."""

    def __init__(
        self,
        server: SessionServer,
        *,
        network: DatagramNetwork,
        push_network: DatagramNetwork,
        invitation: Sir,
        clock: Clock,
        wake_at: Callable[[Micros], None],
        reachable: Callable[[str], None] = lambda host: None,
    ) -> None:
        """Create the carrier. `network` carries the sessions, `push_network` sends the requests for
        them; `wake_at` is told when to call `wake`, `reachable` is called with the host that has
        opened a session."""
        self._server = server
        self._network = network
        self._push_network = push_network
        self._invitation = invitation
        self._clock = clock
        self._wake_at = wake_at
        self._reachable = reachable
        self._asked: dict[str, _Asked] = {}
        self._asks: list[tuple[Micros, int, str]] = []
        """When to ask which host again; entries that no longer apply are skipped."""
        self._tickets: dict[Ticket, tuple[Parcel, Report]] = {}
        self._places: dict[int, str | Ticket] = {}
        """Where the parcel with each number is: the host that was asked for a session, or the
        parcel's ticket within one."""
        self._octets: dict[str, int] = {}
        """Octets that were sent to each host and are not in the outcome of a parcel yet."""
        self._deadlines: list[tuple[Micros, int, Ticket]] = []
        self._count = 0

    def __len__(self) -> int:
        """Return the number of open sessions."""
        return len(self._server)

    def carry(self, parcel: Parcel, report: Report) -> None:
        """Push the parcel within the client's session, or ask the client to open one."""
        now = self._clock.now()
        self._dispose(parcel, report, now)
        self._flush()

    def withdraw(self, number: int) -> bool:
        """Take back a parcel that waits for a session, or for its turn within one."""
        place = self._places.get(number)
        if place is None:
            return False
        if isinstance(place, str):
            self._forget_waiting(place, number)
        elif not self._server.waits(place):
            return False
        else:
            self._server.withdraw((place,), self._clock.now())
            del self._tickets[place]
            self._flush()
        del self._places[number]
        return True

    def _forget_waiting(self, host: str, number: int) -> None:
        """Remove a parcel that waits for a session; the last one ends the requests for it."""
        asked = self._asked[host]
        asked.waiting = [one for one in asked.waiting if one[0].number != number]
        if not asked.waiting:
            del self._asked[host]

    def received(self, data: bytes, peer: Endpoint) -> None:
        """Handle a datagram that a client sent in a session."""
        now = self._clock.now()
        self._act(self._server.receive(data, peer, now), now)
        self._flush()

    def wake(self) -> None:
        """Do what is due now: WTP retransmissions, repeated requests for sessions, deadlines."""
        now = self._clock.now()
        self._act(self._server.timeout(now), now)
        while self._asks and self._asks[0][0] <= now:
            due, _, host = heapq.heappop(self._asks)
            if host in self._asked and self._asked[host].due == due:
                self._ask_again(host, now)
        self._too_late(now)
        self._flush()

    def _flush(self) -> None:
        for data, peer in self._server.datagrams():
            self._network.send(data, peer)
            self._count_octets(str(peer[0]), len(data))
        dues = [heap[0][0] for heap in (self._asks, self._deadlines) if heap]
        if (due := self._server.next_timeout()) is not None:
            dues.append(due)
        if dues:
            self._wake_at(min(dues))

    def _count_octets(self, host: str, octets: int) -> None:
        if host not in self._octets and len(self._octets) >= MOST_COUNTED:
            del self._octets[next(iter(self._octets))]
        self._octets[host] = self._octets.get(host, 0) + octets

    def _counted(self, parcel: Parcel, outcome: Outcome) -> Outcome:
        """Return the outcome of a parcel with everything that was sent to its host since the last
        outcome there: requests for a session, repetitions and acknowledgements are among it."""
        for data, peer in self._server.datagrams():
            self._network.send(data, peer)
            self._count_octets(str(peer[0]), len(data))
        octets = self._octets.pop(parcel.route.endpoint()[0], 0)
        units = int(not isinstance(outcome, NotReached | Unfit))
        return msgspec.structs.replace(outcome, spent=Spent(octets, units))

    # From a parcel to the network.

    def _dispose(self, parcel: Parcel, report: Report, now: Micros) -> None:
        # PPG service, 5.1.2.2.4: after its deadline nothing of a push may be sent.
        if parcel.deliver_before is not None and now >= parcel.deliver_before:
            report(self._counted(parcel, NotReached("deliver_before has passed")))
            return
        host, _ = endpoint = parcel.route.endpoint()
        session = self._server.session(host)
        if session is None or session.suspended:
            self._ask(endpoint, parcel, report, now)
            return
        confirmed = parcel.confirmed and session.confirms
        if parcel.strict and not confirmed:
            report(Unfit(3007, "the client's session accepts no confirmed pushes"))
        elif not confirmed and not session.pushes:
            report(Unfit(3007, "the client's session accepts no unconfirmed pushes"))
        else:
            self._push(session, parcel, report, now, confirmed=confirmed)

    def _push(
        self, session: WspSession, parcel: Parcel, report: Report, now: Micros, *, confirmed: bool
    ) -> None:
        try:
            pdu = _pdu(session, parcel, confirmed=confirmed)
            if (more := needs_more(parcel, len(pdu))) is not None:
                report(more)
                return
            if not confirmed:
                if len(pdu) > MAX_DATAGRAM - 4:
                    raise TooLarge("the push is too large for a datagram", size=len(pdu))
                self._server.push(session, pdu, now)
                report(self._counted(parcel, Sent()))
                return
            ticket = self._server.push_confirmed(session, pdu, now)
        except Rejected as error:
            report(unfit(error))
            return
        self._tickets[ticket] = parcel, report
        if parcel.number:
            self._places[parcel.number] = ticket
        if parcel.deliver_before is not None:
            self._count += 1
            heapq.heappush(self._deadlines, (parcel.deliver_before, self._count, ticket))

    def _too_late(self, now: Micros) -> None:
        """Stop sending the pushes whose deadline has passed, and report them."""
        late: list[Ticket] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            ticket = heapq.heappop(self._deadlines)[2]
            if ticket in self._tickets:
                late.append(ticket)
        unsent = self._server.withdraw(late, now) if late else ()
        for ticket in late:
            if ticket in unsent:
                self._report(ticket, NotReached("deliver_before has passed"))
            else:
                self._report(ticket, Unanswered("no answer before deliver_before"))

    # From the network to an outcome.

    def _act(self, events: list[wsp.Event], now: Micros) -> None:
        for event in events:
            match event:
                case wsp.SessionOpened():
                    self._opened(event.session, now)
                case wsp.Pushed():
                    self._report(event.ticket, Confirmed())
                case wsp.PushRefused():
                    self._report(event.ticket, Aborted(event.reason))
                case wsp.PushUnanswered():
                    self._report(event.ticket, Unanswered(event.reason))
                case wsp.NotSent():
                    fits = not event.too_large
                    reason = event.reason
                    self._report(event.ticket, NotReached(reason) if fits else Unfit(3006, reason))
                case wsp.SessionClosed():
                    pass

    def _report(self, ticket: Ticket, outcome: Outcome) -> None:
        found = self._tickets.pop(ticket, None)
        if found is not None:
            self._places.pop(found[0].number, None)
            found[1](self._counted(found[0], outcome))

    # Clients without a session.

    def _ask(self, endpoint: Endpoint, parcel: Parcel, report: Report, now: Micros) -> None:
        asked = self._asked.get(endpoint[0])
        if asked is None:
            asked = self._asked[endpoint[0]] = _Asked(endpoint)
            self._ask_again(endpoint[0], now)
        asked.waiting.append((parcel, report))
        if parcel.number:
            self._places[parcel.number] = endpoint[0]

    def _ask_again(self, host: str, now: Micros) -> None:
        asked = self._asked[host]
        # PPG service, 5.1.2.2.3: a session that cannot be opened is reported.
        if asked.times == ASK_TIMES:
            del self._asked[host]
            for parcel, report in asked.waiting:
                self._places.pop(parcel.number, None)
                report(self._counted(parcel, NotReached("the client opened no session")))
            return
        asked.times += 1
        asked.due = now + ASK_EVERY
        self._count += 1
        heapq.heappush(self._asks, (asked.due, self._count, host))
        unit = invitation_unit(self._invitation, asked.times)
        self._push_network.send(unit, asked.endpoint)
        self._count_octets(host, len(unit))

    def _opened(self, session: WspSession, now: Micros) -> None:
        asked = self._asked.pop(session.peer[0], None)
        if asked is not None:
            for parcel, report in asked.waiting:
                self._places.pop(parcel.number, None)
                self._dispose(parcel, report, now)
        self._reachable(session.peer[0])


def invitation_unit(invitation: Sir, transaction: int) -> bytes:
    """Encode the request for a session as a datagram to a client's push port."""
    application = Header("X-Wap-Application-Id", str(PUSH_SIA))
    return encode_unit(transaction, Push(MEDIA_TYPE, (application,), encode_sir(invitation)))


def _pdu(session: WspSession, parcel: Parcel, *, confirmed: bool) -> bytes:
    """Encode the push in the form that this client accepts; raise Rejected if there is none."""
    terminal = session.terminal.known_as(described(parcel.capabilities))
    push = for_wsp(PushContent(parcel.content_type, parcel.headers, parcel.body), terminal)
    application = application_of(push)
    if not session.serves(application):
        raise Unsupported("the client has no such application", application=application)
    pdu = encode_pdu(
        Push(push.content_type, wsp_headers(push), push.body, confirmed=confirmed),
        version=terminal.encoding_version,
    )
    if session.sdu and len(pdu) > session.sdu:
        raise TooLarge(
            "the push is larger than the client accepts", size=len(pdu), limit=session.sdu
        )
    return pdu
