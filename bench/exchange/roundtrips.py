"""Measures how good the round-trip estimate is (table 7.10), compared with the true time and with a
stop watch.

A client sends a message of 3 kB every 12 seconds, so that one is on its way at a time, and each
side sends its time with it. The estimate needs no message of its own. The true time is that of the
octets that carried the timestamps, which only a simulation knows; the stop watch runs from sending
a message until its acknowledgement arrives.
"""

from __future__ import annotations

from random import Random
from statistics import mean, stdev
from typing import Final, NamedTuple

from bench.exchange.networks import Network
from bench.exchange.pipe import Pipe
from bench.exchange.protocols import Peer
from bench.exchange.tcp import Connection
from lasthop.clock import HOUR, MILLISECOND, SECOND, Micros
from lasthop.simulation.kernel import Kernel
from lasthop.wire.hop.frames import Hello, Time, Welcome
from lasthop.wire.hop.handshake import Dialing, Waiting
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.hop.roundtrip import RoundTrip

EVERY: Final = 12 * SECOND
BODY: Final = bytes(3000)


class Spread(NamedTuple):
    """The mean and deviation of measured times, in milliseconds."""

    mean: float
    deviation: float


class Side(NamedTuple):
    estimate: Spread
    true: Spread
    error: Spread
    """The estimate less the true time, for each pair."""


class Result(NamedTuple):
    network: str
    samples: int
    client: Side
    server: Side
    watch: Spread
    """The time from a message to its acknowledgement, at the client."""


class Recording(RoundTrip):
    """The real estimator, which also records its samples and the true times."""

    __slots__ = ("believed", "estimates", "other", "sent", "true")

    def __init__(self, original: RoundTrip, now: Micros) -> None:
        super().__init__(now)
        for name in RoundTrip.__slots__:
            setattr(self, name, getattr(original, name))
        self.other: Recording | None = None
        self.sent: dict[int, tuple[Micros, Micros | None]] = {}
        self.believed: Micros | None = None
        """How long the timestamp travelled from which our estimate of the peer's time comes."""
        self.estimates: list[Micros] = []
        self.true: list[Micros] = []

    def time_to_send(self, now: Micros, pending: int) -> Time | None:
        time = super().time_to_send(now, pending)
        if time is not None:
            self.sent[time.own] = now, self.believed
        return time

    def on_time(self, time: Time, now: Micros) -> None:
        if self.other is not None:
            left, believed = self.other.sent[time.own]
            if believed is not None:
                self.estimates.append(now - time.peer * MILLISECOND)
                self.true.append(now - left + believed)
            self.believed = now - left
        super().on_time(time, now)

    def side(self) -> Side:
        errors = [e - t for e, t in zip(self.estimates, self.true, strict=True)]
        return Side(_spread(self.estimates), _spread(self.true), _spread(errors))


def _spread(values: list[Micros]) -> Spread:
    return Spread(mean(values) / MILLISECOND, stdev(values) / MILLISECOND)


def measure(network: Network, *, rounds: int = 200, seed: int = 1) -> Result:
    """Exchange `rounds` messages between the two ends, and return the measured times."""
    pair = _Pair(network, seed)
    pair.run(rounds)
    client, server = pair.recordings()
    return Result(
        network.name, len(client.true), client.side(), server.side(), _spread(pair.watched)
    )


class _Pair:
    def __init__(self, network: Network, seed: int) -> None:
        self._kernel = kernel = Kernel()
        self._random = random = Random(f"{network.name} {seed}")
        up = Pipe(kernel, random, network, up=True)
        down = Pipe(kernel, random, network, up=False)
        now = kernel.now()
        self._client, self._server = Peer("application/xml"), Peer("application/xml")
        self._dialing = Dialing(Hello(app="a", device="d"), mapping=Mapping.STREAM, now=now)
        self._listening = Waiting(mapping=Mapping.STREAM, now=now)
        self._connection = Connection(
            kernel, up, down, to_client=self._at_client, to_server=self._at_server
        )
        self._left: Micros = 0
        self._rounds = 0
        self.watched: list[Micros] = []

    def run(self, rounds: int) -> None:
        self._connection.client.write(b"".join(self._dialing.data_to_send()))
        self._rounds = rounds
        self._kernel.run(until=lambda: len(self.watched) > rounds, limit=100 * HOUR)

    def recordings(self) -> tuple[Recording, Recording]:
        client, server = (
            each.channel.roundtrip if each.channel is not None else None
            for each in (self._client, self._server)
        )
        if not isinstance(client, Recording) or not isinstance(server, Recording):
            raise RuntimeError("the two ends are not connected")
        return client, server

    def _at_server(self, data: bytes) -> None:
        now = self._kernel.now()
        if self._server.channel is None:
            if self._listening.receive(data, now) is None:
                return
            welcome = Welcome(incarnation=bytes(8), epoch=1, heartbeat=3600)
            self._server.channel = channel = self._listening.welcome(welcome, now)
            channel.roundtrip = Recording(channel.roundtrip, now)
        else:
            self._server.take(data, now)
        self._connection.server.write(self._server.flush(now))

    def _at_client(self, data: bytes) -> None:
        now = self._kernel.now()
        if self._client.channel is None:
            opened = self._dialing.receive(data, now)
            if opened is None:
                return
            self._client.channel = channel = opened.connection
            channel.roundtrip = Recording(channel.roundtrip, now)
            client, server = self.recordings()
            client.other, server.other = server, client
            self._kernel.after(EVERY, self._send)
            return
        self._client.take(data, now)
        if self._client.outbound.in_flight == 0 and self._left:
            self.watched.append(now - self._left)
            self._left = 0

    def _send(self) -> None:
        now = self._kernel.now()
        self._left = now
        self._client.waiting.append(BODY)
        self._connection.client.write(self._client.flush(now))
        # A random offset keeps sending out of step with the milliseconds that timestamps count in.
        self._kernel.after(EVERY + self._random.randrange(MILLISECOND), self._send)
