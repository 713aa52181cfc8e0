"""One client of OTA-HTTP: its registration, its connection, and the pushes that wait for it.

Requests go one at a time. A connection that the client opened is preferred; without one the gateway
dials; and if the client does not answer, it is asked to connect.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias, cast

import msgspec

from lasthop.clock import Clock
from lasthop.delivery.carrier import NotReached, Outcome, Sent, Spent, Unanswered, needs_more
from lasthop.delivery.ota.datagrams import Endpoint
from lasthop.delivery.ota.http_push import HttpPush, adapt_push, outcome_of
from lasthop.delivery.ota.unit import unfit
from lasthop.errors import Malformed, Rejected, TooLarge
from lasthop.wire.ota import http
from lasthop.wire.ota.http import AnswerReader, OtaAnswer, Registration

DIAL = 10.0
"""Seconds to connect to a client: a radio that has to wake takes a few."""

ANSWER = 30.0
"""Seconds for an answer of the client."""

INVITED = 30.0
"""Seconds for a client to connect after it was asked to."""

IDLE = 300.0
"""Seconds that an unused connection is kept: less than most networks take to forget it."""

MAX_CONNECTIONS = 10_000
"""The largest number of connections: half of what a process may have open where the limit is
low."""

STALE_TIMES = 2
"""How often in a row a client may answer a push by calling its registration stale; the next such
answer ends the push."""


class Board(Protocol):
    """The methods of a carrier that its clients call."""

    clock: Clock
    invite: Callable[[str], None] | None
    reachable: Callable[[str], None]
    connections: int

    def client(self, host: str) -> Client:
        """Return the client at a host, and remember it as the one used last."""
        ...


class Client:
    """One client: its registration, its connection, and the pushes that wait for it."""

    def __init__(self, carrier: Board, host: str) -> None:
        self._carrier = carrier
        self.host = host
        self._loop = asyncio.get_running_loop()
        self._queue: deque[HttpPush] = deque()
        self._connection: Connection | None = None
        self._dialling: asyncio.Task[None] | None = None
        self._invited: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._registration: Registration | None = None
        self._registered = False
        """Whether the client has registered since it was last away."""
        self._will_return = False
        """Whether the last connection ended after an answer that said so, so that the registration
        stays valid."""
        self._asking: _Asking | None = None
        self._octets = 0
        """Octets that were sent and are not in the outcome of a push yet."""

    @property
    def busy(self) -> bool:
        """Whether pushes wait, or a connection is open or being opened."""
        return bool(self._queue or self._connection or self._dialling or self._invited)

    def take(self, push: HttpPush, endpoint: Endpoint) -> None:
        self._queue.append(push)
        if self._connection is not None:
            self._next()
        elif self._dialling is None and self._invited is None:
            self._dialling = self._loop.create_task(self._dial(endpoint))

    def withdraw(self, push: HttpPush) -> bool:
        """Drop a push of which nothing has left; return False if it is too late."""
        if push.begun:
            return False
        self._queue.remove(push)
        return True

    # Connections.

    async def _dial(self, endpoint: Endpoint) -> None:
        try:
            async with asyncio.timeout(DIAL):
                await self._loop.create_connection(
                    lambda: Connection(self._carrier, self), endpoint[0], endpoint[1]
                )
        except (OSError, TimeoutError) as error:
            self._dialling = None
            self._not_there(str(error) or "no connection in time")
        else:
            self._dialling = None

    def _not_there(self, reason: str) -> None:
        if self._connection is not None:
            return  # The client connected while we were dialling.
        if not self._queue:
            return  # What it was wanted for was withdrawn.
        if self._carrier.invite is None:
            self._give_up(f"the client cannot be connected to: {reason}")
            return
        self._carrier.invite(self.host)
        self._invited = self._loop.call_later(
            INVITED, self._give_up, "the client did not connect when it was asked to"
        )

    def _give_up(self, reason: str) -> None:
        """Report every waiting push as not reached."""
        self._invited = None
        waiting, self._queue = self._queue, deque()
        for push in waiting:
            self._end(push, NotReached(reason))

    def connected(self, connection: Connection, *, dialled: bool) -> None:
        if self._connection is not None and dialled:
            connection.abandon()  # The client connected first.
            return
        if self._connection is not None:
            # The newer connection counts: the older one may be half dead.
            old, self._connection = self._connection, None
            old.abandon()
            self._interrupted("the client opened another connection")
        if self._invited is not None:
            self._invited.cancel()
            self._invited = None
        self._connection = connection
        if not self._will_return:
            self._registered = False
        self._will_return = False
        self._next()

    def lost(self, connection: Connection) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        registering = isinstance(self._asking, _Registering)
        self._interrupted("the connection was lost")
        if self._queue and registering:
            self._give_up("the client did not register")
        elif self._queue:
            endpoint = self._queue[0].parcel.route.endpoint()
            self._dialling = self._loop.create_task(self._dial(endpoint))

    def _interrupted(self, reason: str) -> None:
        asking, self._asking = self._asking, None
        self._stop_timer()
        if isinstance(asking, HttpPush):
            self._end(asking, Unanswered(reason))

    # Requests: one at a time.

    def _register(self) -> None:
        assert self._connection is not None
        tag = self._registration.tag if self._registration else None
        self._asking = _Registering()
        self._write(http.options_request(_host(self.host), tag))
        self._await()

    def _next(self) -> None:
        """Post the next push, if the connection is free."""
        while self._connection is not None and self._asking is None and self._queue:
            if not self._registered:
                self._register()
                return
            push = self._queue.popleft()
            late = push.parcel.deliver_before
            # PPG service, 5.1.2.2.4: after its deadline nothing of a push may be sent.
            if late is not None and self._carrier.clock.now() >= late:
                push.end(NotReached("deliver_before has passed"))
                continue
            self._post(push)
        if self._connection is not None and self._asking is None:
            self._rest()

    def _post(self, push: HttpPush) -> None:
        assert self._connection is not None
        parcel = push.parcel
        registration = self._registration or Registration()
        try:
            content = adapt_push(parcel, registration)
            request = http.post_request(
                _host(self.host), content, tag=registration.tag, response=parcel.response
            )
        except Rejected as error:
            push.end(unfit(error))
            return
        if (more := needs_more(parcel, len(request))) is not None:
            push.end(more)
            return
        self._asking = push
        push.begun = True
        self._write(request)
        self._await()
        if not parcel.confirmed:
            self._end(push, Sent())  # Unconfirmed: as if sent without a connection (5.1.2.2.5.1).

    def _write(self, data: bytes) -> None:
        assert self._connection is not None
        self._connection.write(data)
        self._octets += len(data)

    def _end(self, push: HttpPush, outcome: Outcome) -> None:
        """Report an outcome, with everything that was sent to the client since the last one."""
        spent, self._octets = Spent(self._octets, int(push.begun)), 0
        push.end(msgspec.structs.replace(outcome, spent=spent))

    def answered(self, connection: Connection, answer: OtaAnswer) -> None:
        if connection is not self._connection or self._asking is None:
            connection.abandon()  # No request waits for this answer.
            self.lost(connection)
            return
        asking, self._asking = self._asking, None
        self._stop_timer()
        if not answer.keeps:
            self._will_return = True
            self._connection = None
            connection.abandon()
        if isinstance(asking, _Registering):
            self._registration_answered(answer)
        else:
            self._push_answered(asking, answer)
        if self._connection is None and self._queue and self._dialling is None:
            endpoint = self._queue[0].parcel.route.endpoint()
            self._dialling = self._loop.create_task(self._dial(endpoint))
        self._next()

    def _registration_answered(self, answer: OtaAnswer) -> None:
        found = http.registration(answer, self._registration)
        if found is None:
            self._registration = None
            self._give_up(f"the client did not register: it answered {answer.status}")
            return
        self._registration = found
        self._registered = True

    def _push_answered(self, push: HttpPush, answer: OtaAnswer) -> None:
        result = http.verdict(answer)
        if isinstance(result, http.Stale) and push.stale < STALE_TIMES:
            push.stale += 1
            self._registered = False
            self._queue.appendleft(push)
            return
        self._end(push, outcome_of(result))

    # Timers.

    def _await(self) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(ANSWER, self._silent)

    def _silent(self) -> None:
        """Drop a connection without an answer: what arrives on it later could be the answer to
        anything."""
        connection = self._connection
        if connection is not None:
            connection.abandon()
            self.lost(connection)

    def _rest(self) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(IDLE, self._silent)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        self._queue.clear()
        self._asking = None
        self._stop_timer()
        if self._invited is not None:
            self._invited.cancel()
        if self._dialling is not None:
            self._dialling.cancel()
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.abandon()


class _Registering:
    """An OPTIONS request that waits for its answer."""


_Asking: TypeAlias = _Registering | HttpPush


class Connection(asyncio.Protocol):
    """One TCP connection, opened by the client or by the gateway."""

    def __init__(self, carrier: Board, client: Client | None) -> None:
        self._carrier = carrier
        self._client = client
        self._reader = AnswerReader()
        self._transport: asyncio.Transport | None = None

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def abandon(self) -> None:
        """Close the connection without telling the client object."""
        self._client = None
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        carrier = self._carrier
        carrier.connections += 1
        if carrier.connections > MAX_CONNECTIONS:
            self._transport.abort()
            return
        dialled = self._client is not None
        if self._client is None:
            peer = transport.get_extra_info("peername")
            if not isinstance(peer, tuple):
                self._transport.abort()  # The client has disconnected already.
                return
            self._client = carrier.client(peer[0])
        self._client.connected(self, dialled=dialled)
        if not dialled:
            carrier.reachable(self._client.host)

    def data_received(self, data: bytes) -> None:
        client = self._client
        if client is None:
            return
        try:
            answers = self._reader.receive(data)
        except (Malformed, TooLarge):
            self.abandon()
            client.lost(self)
            return
        for answer in answers:
            client.answered(self, answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._carrier.connections -= 1
        client, self._client = self._client, None
        if client is not None:
            client.lost(self)


def _host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
