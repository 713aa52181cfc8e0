"""A whole gateway, its store in memory, that devices reach by every kind of interconnect, and
everything that it sends written down."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from hashlib import sha256
from pathlib import Path

from lasthop.core.gateway import Gateway, Identity
from lasthop.core.publishing.submission import Submission
from lasthop.core.registry import DeviceRecord
from lasthop.delivery.channel import Channel
from lasthop.device.client import Device
from lasthop.device.clock import DeviceClock
from lasthop.device.retry import Backoff
from lasthop.errors import StoreError
from lasthop.message import Target, TargetKind
from lasthop.runtime.engine import Engine
from lasthop.store.memory import MemoryStore
from lasthop.store.writer import CommitWriter
from lasthop.wire.hop.frames import Ack, CloseCode, Frame, Hello, MessageFrame
from lasthop.wire.hop.ranges import RangeSet
from tests.delivery.conformance.kinds import KINDS, opened
from tests.transport.certificates import Authority

APP = "shop"
TOKEN = "let me in"


class WatchedChannel:
    """A channel, with everything written down that leaves over it."""

    def __init__(self, channel: Channel, house: House) -> None:
        self._channel = channel
        self._house = house
        self.number = 0
        self.device = ""
        """Who said HELLO here."""

    @property
    def local(self) -> bool:
        return self._channel.local

    @property
    def reliable(self) -> bool:
        return self._channel.reliable

    def send(self, frames: Sequence[Frame]) -> None:
        self._house.sent(self.device, frames)
        self._channel.send(frames)

    def sent_elsewhere(self, frames: Sequence[Frame]) -> None:
        self._channel.sent_elsewhere(frames)

    def report_drained(self) -> None:
        self._channel.report_drained()

    def close(self, code: CloseCode, reason: str, retry_after_ms: int = 0) -> None:
        self._channel.close(code, reason, retry_after_ms)


class House:
    """The gateway; listeners report to it, and it to the engine."""

    def __init__(self, authority: Authority) -> None:
        self.clock = DeviceClock()
        self.store = MemoryStore(incarnation=7)
        self.authority = authority
        self.urls: dict[str, str] = {}
        self.channels: dict[Channel, WatchedChannel] = {}
        self.times_sent: Counter[tuple[str, int]] = Counter()
        """How often each number of a device has left."""
        self.needless: list[tuple[str, int]] = []
        """Numbers that left after the device had acknowledged them."""
        self._acknowledged: defaultdict[str, RangeSet] = defaultdict(RangeSet)
        restored = self.store.open()
        identity = Identity(open_house=True)
        self.writer = CommitWriter(self.store, next_commit=restored.next_commit)
        self.engine = Engine(
            Gateway(identity, restored, random64=lambda: 1, now=self.clock.now()),
            writer=self.writer,
            reader=self.store.reader(),
            clock=self.clock,
            failed=self._failed,
        )

    # What listeners report.

    def opened(self, channel: Channel) -> None:
        watched = self.channels[channel] = WatchedChannel(channel, self)
        self.engine.opened(watched)
        channel.number = watched.number

    def received(self, channel: Channel, frames: Sequence[Frame]) -> None:
        watched = self.channels[channel]
        for frame in frames:
            if isinstance(frame, Hello):
                watched.device = frame.device
        self.engine.received(watched, frames)
        # What the engine has decided before it heard this leaves with its next turn, which it has
        # asked the loop for by now: what leaves after that turn was decided in full knowledge.
        asyncio.get_running_loop().call_soon(self._note, watched.device, frames)

    def _note(self, device: str, frames: Sequence[Frame]) -> None:
        acknowledged = self._acknowledged[device]
        for frame in frames:
            if isinstance(frame, Ack | Hello):
                for start, stop in ((0, frame.received), *frame.individual):
                    acknowledged.add(start, stop)

    def paused(self, channel: Channel, paused: bool) -> None:
        self.engine.paused(self.channels[channel], paused)

    def drained(self, channel: Channel) -> None:
        self.engine.drained(self.channels[channel])

    def lost(self, channel: Channel, reason: str) -> None:
        self.engine.lost(self.channels.pop(channel), reason)

    def sent(self, device: str, frames: Sequence[Frame]) -> None:
        """The gateway hands frames to a channel."""
        for frame in frames:
            if isinstance(frame, MessageFrame) and frame.seq is not None:
                self.times_sent[device, frame.seq] += 1
                if frame.seq in self._acknowledged[device]:
                    self.needless.append((device, frame.seq))

    # For tests.

    def device(self, kind: str, *, token: str | None = None, name: str = "phone") -> Device:
        """A device that dials by this kind, and comes back quickly."""
        return Device(
            self.urls[kind],
            app=APP,
            name=name,
            token=token,
            tls=self.authority.client(),
            backoff=Backoff(first=0.01, longest=0.01, random=lambda: 0.5),
            learn_heartbeat=False,
        )

    async def publish(self, *bodies: bytes, name: str = "phone") -> None:
        submissions = [
            Submission(target=Target(TargetKind.DEVICE, name), body=body) for body in bodies
        ]
        await self.engine.call(lambda gateway, now: gateway.publish(APP, "test", submissions, now))

    def forget_acknowledgements(self) -> None:
        """Begin to note anew what is acknowledged: what was noted may have been damaged."""
        self._acknowledged.clear()

    async def register(self, name: str) -> None:
        """A device that must show its token."""
        record = DeviceRecord(token_hash=sha256(TOKEN.encode()).digest())
        await self.engine.call(lambda gateway, now: gateway.admin.register(APP, name, record, now))

    def _failed(self, error: StoreError) -> None:
        raise AssertionError(error)


@asynccontextmanager
async def housed(authority: Authority, directory: Path, *kinds: str) -> AsyncIterator[House]:
    """A gateway with listeners of these kinds, or of all."""
    house = House(authority)
    async with AsyncExitStack() as stack:
        stack.callback(house.engine._reading.shutdown)
        stack.push_async_callback(asyncio.to_thread, house.writer.close)
        stack.push_async_callback(house.engine.stop)
        for kind in kinds or KINDS:
            _, house.urls[kind] = await stack.enter_async_context(
                opened(kind, house, house.clock, directory, authority)
            )
        yield house
