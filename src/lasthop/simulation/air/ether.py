"""The air in rehearsal: datagrams that are lost, duplicated and late, and handsets that listen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from lasthop.clock import MILLISECOND, Micros
from lasthop.simulation.kernel import Kernel
from lasthop.wire.ota.wsp_client import Event, PushArrived, SessionAsked, SessionClient, contact_of

Address: TypeAlias = tuple[str, int]
Receive: TypeAlias = Callable[[bytes, Address], None]

PUSH_PORT, SESSION_PORT = 2948, 49152


@dataclass(slots=True)
class AirWeather:
    """How the network treats datagrams: loss, duplication and delay."""

    loss: float = 0.0
    doubling: float = 0.0
    delay: Micros = 100 * MILLISECOND
    spread: Micros = 0


class Ether:
    """A network that carries datagrams between addresses."""

    def __init__(self, kernel: Kernel, random: Random, weather: AirWeather) -> None:
        self._kernel = kernel
        self._random = random
        self.weather = weather
        self._places: dict[Address, Receive] = {}

    def listen(self, at: Address, receive: Receive) -> None:
        """Register the receiver at an address, in place of an earlier one."""
        self._places[at] = receive

    def leave(self, at: Address) -> None:
        """Remove the receiver at an address; datagrams to it are lost."""
        self._places.pop(at, None)

    def send(self, data: bytes, to: Address, source: Address) -> None:
        """Send a datagram, which may be lost, duplicated or late."""
        weather, random = self.weather, self._random
        copies = int(random.random() >= weather.loss)
        copies += int(copies and random.random() < weather.doubling)
        for _ in range(copies):
            flight = weather.delay + random.randint(0, weather.spread)
            self._kernel.after(flight, lambda: self._arrive(data, to, source))

    def _arrive(self, data: bytes, to: Address, source: Address) -> None:
        receive = self._places.get(to)
        if receive is not None:
            receive(data, source)


class Socket:
    """One address of the gateway in the ether."""

    def __init__(self, ether: Ether, at: Address) -> None:
        self._ether = ether
        self._at = at

    def send(self, data: bytes, to: Address) -> None:
        """Send a datagram from this address."""
        self._ether.send(data, to, self._at)


class Handset:
    """A phone that opens sessions when asked and shows what it is pushed. Now and then its battery
    is empty; then it forgets everything."""

    def __init__(
        self,
        kernel: Kernel,
        random: Random,
        ether: Ether,
        host: str,
        *,
        refuses: Callable[[int], int],
    ) -> None:
        """`refuses` returns the reason for which the user refuses a message; 0: the user accepts
        it."""
        self._kernel = kernel
        self._random = random
        self._ether = ether
        self._host = host
        self._refuses = refuses
        self._client: SessionClient | None = None
        self._planned: Micros | None = None
        self.shown: Counter[int] = Counter()
        self.lives = 0
        self.start()

    def start(self) -> None:
        """Start the phone, with an empty memory."""
        self.lives += 1
        self._client = SessionClient(first_tid=self._random.randrange(1 << 15))
        self._ether.listen((self._host, PUSH_PORT), lambda data, _: self._unit(data))
        self._ether.listen((self._host, SESSION_PORT), self._receive)

    def stop(self) -> None:
        """Stop the phone: its addresses no longer answer."""
        self._client = None
        self._ether.leave((self._host, PUSH_PORT))
        self._ether.leave((self._host, SESSION_PORT))

    def _unit(self, data: bytes) -> None:
        if self._client is not None:
            self._act(self._client, self._client.receive_unit(data))

    def _receive(self, data: bytes, peer: Address) -> None:
        if self._client is not None:
            self._act(self._client, self._client.receive(data, peer, self._kernel.now()))

    def _act(self, client: SessionClient, events: list[Event]) -> None:
        now = self._kernel.now()
        for event in events:
            if isinstance(event, SessionAsked):
                contact = contact_of(event.request)
                if contact is not None:
                    client.connect(contact, now)
            elif isinstance(event, PushArrived):
                number = int(event.push.data.rstrip(b"."))
                reason = self._refuses(number)
                if event.side is None:
                    self.shown[number] += 1
                elif reason:
                    client.refuse(event.side, reason, now)
                else:
                    self.shown[number] += 1
                    client.accept(event.side, now)
        self._flush(client)

    def _flush(self, client: SessionClient) -> None:
        for data, peer in client.datagrams():
            self._ether.send(data, peer, (self._host, SESSION_PORT))
        due = client.next_timeout()
        if due is not None and due != self._planned:
            self._planned = due
            self._kernel.at(due, lambda: self._wake(client))

    def _wake(self, client: SessionClient) -> None:
        if self._client is client:
            self._planned = None
            self._act(client, client.timeout(self._kernel.now()))
