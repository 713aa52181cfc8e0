"""Sessions: what is agreed on, what they take, and how they end."""

from __future__ import annotations

from typing import Any

import pytest

from lasthop.clock import SECOND, Micros
from lasthop.wire.ota.terminal import Terminal
from lasthop.wire.ota.wsp_client import Connected, Resumed, SessionFailed
from lasthop.wire.ota.wsp_server import SessionServer
from lasthop.wire.ota.wsp_session import (
    CONGESTION,
    USERDCR,
    Event,
    NotSent,
    Pushed,
    PushRefused,
    PushUnanswered,
    SessionClosed,
    SessionOpened,
    WspSession,
)
from lasthop.wire.wsp.capabilities import Capabilities, WspOptions
from lasthop.wire.wsp.headers import Header
from lasthop.wire.wsp.pdus import Push, encode_pdu
from lasthop.wire.wtp.endpoint import Endpoint
from lasthop.wire.wtp.pdus import Abort, Invoke, decode_datagram, encode_pdu as encode_wtp
from tests.wire.ota.phone import SERVER, Phone
from tests.wire.wtp.air import Air

BOTH = WspOptions.PUSH | WspOptions.CONFIRMED_PUSH


class Server:
    """A session server on a rehearsed network."""

    def __init__(self, air: Air) -> None:
        self.sessions = SessionServer(first_tid=100, first_session=299)
        self.events: list[Event] = []
        self.air = air
        air.add(SERVER, self.sessions, self._receive, self._timeout)

    def _receive(self, data: bytes, peer: Any, now: Micros) -> None:
        self.events += self.sessions.receive(data, peer, now)

    def _timeout(self, now: Micros) -> None:
        self.events += self.sessions.timeout(now)

    def session(self, host: str = "10.0.0.2") -> WspSession:
        found = self.sessions.session(host)
        assert found is not None
        return found

    def push(self, data: bytes = b"hello") -> Any:
        pdu = encode_pdu(Push("text/plain", (), data, confirmed=True))
        return self.sessions.push_confirmed(self.session(), pdu, self.air.now)

    def outcomes(self) -> list[Event]:
        return [
            event for event in self.events if not isinstance(event, SessionOpened | SessionClosed)
        ]


@pytest.fixture
def air() -> Air:
    return Air(1)


@pytest.fixture
def server(air: Air) -> Server:
    return Server(air)


def connected(air: Air, **options: Any) -> Phone:
    phone = Phone(air, **options)
    phone.client.connect(SERVER, air.now)
    air.run(limit=5 * SECOND)
    return phone


class TestOpening:
    def test_both_ends_agree_on_the_less(self, air: Air, server: Server) -> None:
        wanted = Capabilities(
            client_sdu_size=500,
            options=BOTH | WspOptions.LARGE_DATA_TRANSFER,
            push_outstanding=200,
            others=(b"\x86\x01",),
        )
        phone = connected(air, capabilities=wanted)
        session = server.session()
        assert (session.number, session.sdu, session.most) == (300, 500, 16)
        assert session.options == BOTH
        assert phone.client.session == 300
        granted = Capabilities(client_sdu_size=500, options=BOTH, push_outstanding=16)
        assert phone.events == [Connected(granted)]

    def test_a_client_that_says_nothing_takes_no_pushes(self, air: Air, server: Server) -> None:
        connected(air, capabilities=Capabilities())
        session = server.session()
        assert not session.pushes
        assert not session.confirms
        assert (session.sdu, session.most) == (1400, 1)

    def test_the_client_describes_itself(self, air: Air, server: Server) -> None:
        headers = (
            Header("Accept", "application/vnd.wap.sic"),
            Header("Accept", "application/vnd.wap.slc"),
            Header("Accept-Application", "x-wap-application:wml.ua"),
            Header("Encoding-Version", "1.4"),
        )
        connected(air, headers=headers)
        session = server.session()
        assert session.terminal == Terminal(
            accept=frozenset({"application/vnd.wap.sic", "application/vnd.wap.slc"}),
            encoding_version=(1, 4),
        )
        assert session.serves(2)
        assert session.serves(None)
        assert not session.serves(4)

    def test_any_application_is_any(self, air: Air, server: Server) -> None:
        connected(air, headers=(Header("Accept-Application", "*"),))
        assert server.session().serves("http://a.example/b")

    def test_a_second_session_ends_the_first(self, air: Air, server: Server) -> None:
        phone = connected(air)
        first = server.session()
        phone.client.connect(SERVER, air.now)
        air.run(limit=5 * SECOND)
        assert server.session() is not first
        assert len(server.sessions) == 1
        assert server.events[-2:] == [SessionClosed(first), SessionOpened(server.session())]

    def test_nobody_answers(self, air: Air) -> None:
        phone = connected(air)
        air.run()
        assert phone.events == [SessionFailed(8)]

    @pytest.mark.parametrize("data", [b"", b"\x01", b"\x99", b"\x04\x20\x01\x80", b"\x06\x01\x83x"])
    def test_what_opens_no_session_is_refused(self, air: Air, server: Server, data: bytes) -> None:
        end = Endpoint(first_tid=1)
        refused: list[Any] = []
        air.add(
            ("10.0.0.3", 1),
            end,
            lambda d, p, n: refused.extend(end.receive(d, p, n)),
            lambda n: refused.extend(end.timeout(n)),
        )
        end.invoke(SERVER, data, tcl=2, now=air.now)
        air.run()
        assert len(server.sessions) == 0
        (event,) = refused
        assert event.by_user


class TestPushing:
    def test_a_confirmed_push_is_confirmed(self, air: Air, server: Server) -> None:
        phone = connected(air)
        ticket = server.push()
        air.run(limit=5 * SECOND)
        assert server.outcomes() == [Pushed(ticket)]
        assert phone.had == {b"hello": 1}

    def test_an_unconfirmed_one_arrives(self, air: Air, server: Server) -> None:
        phone = connected(air)
        pdu = encode_pdu(Push("text/plain", (), b"hi"))
        server.sessions.push(server.session(), pdu, air.now)
        air.run(limit=5 * SECOND)
        assert phone.had == {b"hi": 1}
        assert server.outcomes() == []

    def test_a_refusal_has_its_reason(self, air: Air, server: Server) -> None:
        phone = connected(air)
        phone.refuses = {b"hello": USERDCR, b"later": CONGESTION}
        first, second = server.push(), server.push(b"later")
        air.run(limit=5 * SECOND)
        reason = "the client could not accept it (0xe4)"
        expected = [PushRefused(first, USERDCR), NotSent(second, reason)]
        assert sorted(server.outcomes(), key=str) == sorted(expected, key=str)

    def test_no_more_are_on_their_way_than_the_client_takes(self, air: Air, server: Server) -> None:
        connected(air, capabilities=Capabilities(options=BOTH, push_outstanding=2))
        tickets = [server.push(b"%d" % n) for n in range(5)]
        assert len(server.session().under_way) == 2
        air.run(limit=5 * SECOND)
        assert {event.ticket for event in server.outcomes() if isinstance(event, Pushed)} == set(
            tickets
        )

    def test_a_client_that_is_gone_is_noticed(self, air: Air, server: Server) -> None:
        phone = connected(air)
        air.add((phone.host, 49152), _Silent(), lambda *_: None, lambda _: None)
        ticket = server.push()
        air.run()
        assert server.outcomes() == [PushUnanswered(ticket, "no response")]

    def test_a_client_that_takes_no_segments(self, air: Air, server: Server) -> None:
        phone = connected(air)

        def refuse(data: bytes, peer: Any, now: Micros) -> None:
            pdu = decode_datagram(data)[0]
            if isinstance(pdu, Invoke):
                abort = encode_wtp(Abort(pdu.tid | 0x8000, 4))
                server.events += server.sessions.receive(abort, (phone.host, 49152), now)

        air.add((phone.host, 49152), _Silent(), refuse, lambda _: None)
        ticket = server.push(bytes(5000))
        air.run(limit=SECOND)
        reason = "the client accepts no message of this size"
        assert server.outcomes() == [NotSent(ticket, reason, too_large=True)]


class TestLeaving:
    def test_a_closed_session_gives_back_what_it_had(self, air: Air, server: Server) -> None:
        phone = connected(air, capabilities=Capabilities(options=BOTH, push_outstanding=1))
        phone.client.disconnect(air.now)
        first, second = server.push(b"1"), server.push(b"2")
        air.run(limit=5 * SECOND)
        reason = "the client closed the session"
        assert server.outcomes() == [PushUnanswered(first, reason), NotSent(second, reason)]
        assert server.sessions.session(phone.host) is None

    def test_a_suspended_session_is_resumed_elsewhere(self, air: Air, server: Server) -> None:
        phone = connected(air)
        session = server.session()
        phone.client.suspend(air.now)
        air.run(limit=5 * SECOND)
        assert session.suspended
        assert not session.confirms
        air.add(("10.0.0.9", 5), phone.client, phone._receive, phone._timeout)
        air.add((phone.host, 49152), _Silent(), lambda *_: None, lambda _: None)
        phone.client.resume(air.now)
        air.run(limit=5 * SECOND)
        assert phone.events[-1] == Resumed(True)
        assert server.session("10.0.0.9") is session
        assert server.sessions.session(phone.host) is None
        ticket = server.sessions.push_confirmed(
            session, encode_pdu(Push("text/plain", (), b"x", confirmed=True)), air.now
        )
        air.run(limit=5 * SECOND)
        assert server.outcomes() == [Pushed(ticket)]

    def test_a_session_that_is_not_known_cannot_be_resumed(self, air: Air, server: Server) -> None:
        phone = connected(air)
        server.sessions._sessions.clear()
        phone.client.resume(air.now)
        air.run(limit=5 * SECOND)
        assert phone.events[-1] == Resumed(False)
        assert phone.client.session is None

    def test_nobody_closes_the_session_of_another(self, air: Air, server: Server) -> None:
        phone = connected(air)
        other = Phone(air, "10.0.0.7")
        other.client.session, other.client._server = phone.client.session, SERVER
        other.client.disconnect(air.now)
        other.client.session = phone.client.session
        other.client.suspend(air.now)
        air.run(limit=5 * SECOND)
        assert not server.session(phone.host).suspended

    def test_what_is_withdrawn_in_time_has_not_left(self, air: Air, server: Server) -> None:
        phone = connected(air, capabilities=Capabilities(options=BOTH, push_outstanding=1))
        first, second = server.push(b"1"), server.push(b"2")
        assert server.sessions.withdraw([first, second], air.now) == {second}
        air.run(limit=5 * SECOND)
        assert server.outcomes() == []
        assert phone.had[b"2"] == 0


class _Silent:
    def datagrams(self) -> list[tuple[bytes, Any]]:
        return []

    def next_timeout(self) -> Micros | None:
        return None
