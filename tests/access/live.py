"""A gateway behind a desk, in memory and on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import TypeVar

from lasthop.clock import SECOND, Micros
from lasthop.core.effects import Appeared, Changed, Effect, Notify, Recall, Send
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.limits import Limits
from lasthop.core.registry import DeviceRecord, hash_token
from lasthop.core.rights.people import SignedTokens
from lasthop.errors import Overloaded
from lasthop.store.base import Reader
from lasthop.store.commit import DeliveryRow
from lasthop.store.memory import MemoryStore
from lasthop.wire.hop.frames import Ack, Frame, Headers, Hello, MessageFrame, Operation, Welcome

T = TypeVar("T")

START = 1_750_000_000 * SECOND


class LiveInMemory:
    """A desk whose every call is durable at once. Time passes only when it is told to."""

    def __init__(
        self,
        *,
        patient: bool = True,
        now: Micros = START,
        limits: Limits | None = None,
        store: MemoryStore | None = None,
        tokens: SignedTokens | None = None,
    ) -> None:
        self.store = store or MemoryStore()
        self.time = now
        self.calls = 0
        self.full = False
        """While set, no work is taken in."""
        self.slow = False
        """While set, a turn ends after its first commit, with work left to do."""
        self.patient = patient
        """Otherwise every wait ends at once."""
        salts = count(1)
        self.gateway = Gateway(
            Identity(name="test", limits=limits or Limits(), tokens=tokens),
            self.store.open(),
            random64=lambda: next(salts),
            now=now,
        )
        self._waits: dict[int, list[asyncio.Event]] = {}
        self._channels = count(1)
        self.sent: dict[int, list[Frame]] = {}
        self.notifies: list[Notify] = []
        self.listeners: Callable[[Appeared], None] | None = None
        self.turn()

    def now(self) -> Micros:
        return self.time

    async def call(self, act: Callable[[Gateway, Micros], T]) -> T:
        self.calls += 1
        if self.full:
            raise Overloaded("the disk is full", retry_after=0.2)
        result = act(self.gateway, self.time)
        await asyncio.sleep(0)  # Others get their turn before it is durable.
        self.turn()
        return result

    async def durable(self) -> None:
        if self.full:
            raise Overloaded("the disk is full", retry_after=0.2)
        self.turn()

    def look(self, ask: Callable[[Gateway], T]) -> T:
        return ask(self.gateway)

    async def read(self, ask: Callable[[Reader], T]) -> T:
        await asyncio.sleep(0)
        return ask(self.store)

    async def wait(
        self, key: int, ready: Callable[[list[DeliveryRow]], bool], seconds: float
    ) -> list[DeliveryRow]:
        deadline = self.time + round(seconds * SECOND)
        self.gateway.deliveries.watch(key)
        changed = asyncio.Event()
        self._waits.setdefault(key, []).append(changed)
        try:
            while True:
                changed.clear()
                rows = self.store.deliveries(key)
                if ready(rows) or self.time >= deadline or not self.patient:
                    return rows
                await changed.wait()
        finally:
            self.gateway.deliveries.unwatch(key)
            self._waits[key].remove(changed)

    async def watch(self, key: int, ask: Callable[[Gateway], T | None], seconds: float) -> T | None:
        deadline = self.time + round(seconds * SECOND)
        self.gateway.deliveries.watch(key)
        changed = asyncio.Event()
        self._waits.setdefault(key, []).append(changed)
        try:
            while True:
                changed.clear()
                answer = ask(self.gateway)
                if answer is not None or self.time >= deadline or not self.patient:
                    return answer
                await changed.wait()
        finally:
            self.gateway.deliveries.unwatch(key)
            self._waits[key].remove(changed)

    @property
    def watchers(self) -> int:
        """How many wait at the desk."""
        return sum(map(len, self._waits.values()))

    def turn(self) -> None:
        """Carry out whatever is due, until nothing is."""
        gateway = self.gateway
        gateway.wake(self.time)
        while True:
            gateway.settle(self.time)
            effects = gateway.effects()
            self._perform(effects)
            commit = gateway.commit(self.time, flush=True)
            if commit is not None:
                self.store.apply(commit)
                gateway.written(commit.n)
                gateway.proceed(self.time)
                if self.slow:
                    return
            elif not effects:
                return

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Changed):
                for changed in self._waits.get(effect.message, ()):
                    changed.set()
            elif isinstance(effect, Notify):
                self.notifies.append(effect)
            elif isinstance(effect, Recall):
                messages = self.store.messages(effect.keys)
                had = self.store.delivered_to(effect.device, effect.keys)
                self.gateway.recalled(effect.device, messages, had, self.time)
            elif isinstance(effect, Appeared) and self.listeners is not None:
                self.listeners(effect)
            elif isinstance(effect, Send):
                self.sent.setdefault(effect.channel, []).extend(effect.frames)

    def pass_time(self, seconds: float) -> None:
        """It is later now."""
        self.time += round(seconds * SECOND)
        self.turn()
        for waiting in self._waits.values():
            for changed in waiting:
                changed.set()

    def register(
        self,
        name: str,
        *topics: str,
        app: str = "default",
        user: str = "",
        capabilities: dict[str, str] | None = None,
    ) -> int:
        """Add a device; returns its number."""
        record = DeviceRecord(
            subscriptions=list(topics),
            user=user,
            token_hash=hash_token("token"),
            capabilities=capabilities or {},
        )
        device = self.gateway.admin.register(app, name, record, self.time)
        self.turn()
        return device.number

    def connect(self, name: str, *, app: str = "default") -> Phone:
        """Bring a device into contact."""
        return Phone(self, next(self._channels), name, app)


class Phone:
    """A device in contact, that does what the test tells it to."""

    def __init__(self, live: LiveInMemory, channel: int, name: str, app: str) -> None:
        self._live = live
        self.channel = channel
        self._seq = 0
        live.gateway.channel_opened(channel)
        self._say(Hello(app=app, device=name, token="token", link="wifi", network="home"))
        assert any(isinstance(frame, Welcome) for frame in live.sent[channel])

    def messages(self) -> list[MessageFrame]:
        """What has come in."""
        frames = self._live.sent[self.channel]
        return [frame for frame in frames if isinstance(frame, MessageFrame)]

    def acknowledge(self, count: int, delivered: int | None = None) -> None:
        """Say how many were received, and how many the application has had."""
        self._say(Ack(count, count if delivered is None else delivered))

    def reply(self, to: int, body: bytes, content_type: str = "text/plain") -> None:
        """Answer a message."""
        headers = Headers(operation=Operation.REPLY, in_reply_to=to, content_type=content_type)
        self.send(headers, body)

    def send(self, headers: Headers, body: bytes, *, key: int | None = None) -> None:
        """Send a message of its own."""
        self._say(MessageFrame(self._seq, key, None, headers, body))
        self._seq += 1

    def _say(self, *frames: Frame) -> None:
        self.hear(frames)

    def hear(self, frames: Sequence[Frame]) -> None:
        live = self._live
        live.gateway.frames_received(self.channel, frames, live.time, local=True)
        live.turn()
