"""An engine over a store in memory, with channels that a test plays itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from random import Random

from lasthop.core.gateway import Gateway, Identity
from lasthop.core.publishing.acceptance import Receipt
from lasthop.core.publishing.submission import Submission
from lasthop.errors import StoreError
from lasthop.message import Target, TargetKind
from lasthop.runtime.clock import SystemClock
from lasthop.runtime.engine import Engine, Observer
from lasthop.store.commit import Commit
from lasthop.store.memory import MemoryStore
from lasthop.store.writer import CommitWriter
from lasthop.wire.hop.frames import CloseCode, Credit, Frame, Hello, MessageFrame, Welcome
from lasthop.wire.pap.answers import PapAnswer

DEADLINE = 5.0


class Line:
    """A channel whose far end is the test."""

    def __init__(self) -> None:
        self.number = 0
        self.sent: list[Frame] = []
        self.closed: tuple[CloseCode, str] | None = None
        self._news = asyncio.Event()

    @property
    def local(self) -> bool:
        return True

    @property
    def reliable(self) -> bool:
        return True

    def send(self, frames: Sequence[Frame]) -> None:
        self.sent += frames
        self._news.set()

    def sent_elsewhere(self, frames: Sequence[Frame]) -> None:
        """It is the only one."""

    def report_drained(self) -> None:
        """Nothing is large here."""

    def close(self, code: CloseCode, reason: str, retry_after_ms: int = 0) -> None:
        self.closed = code, reason
        self._news.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not happened():
                self._news.clear()
                await self._news.wait()

    @property
    def bodies(self) -> list[bytes]:
        return [frame.body for frame in self.sent if isinstance(frame, MessageFrame)]


class Seen(Observer):
    def __init__(self) -> None:
        self.commits: list[Commit] = []
        self.closed: list[CloseCode] = []

    def committed(self, commit: Commit, seconds: float) -> None:
        assert seconds >= 0
        self.commits.append(commit)

    def disconnected(self, code: CloseCode) -> None:
        self.closed.append(code)


class Rig:
    """An engine, what is underneath it, and what it reports."""

    def __init__(self, store: MemoryStore) -> None:
        clock = SystemClock()
        restored = store.open()
        self.store = store
        self.failures: list[StoreError] = []
        self.seen = Seen()
        gateway = Gateway(
            Identity(open_house=True),
            restored,
            random64=lambda: Random(1).getrandbits(64),
            now=clock.now(),
        )
        self.engine = Engine(
            gateway,
            writer=CommitWriter(store, next_commit=restored.next_commit),
            reader=store,
            clock=clock,
            failed=self.failures.append,
            observer=self.seen,
            tell=self._hear,
        )
        self.told: asyncio.Queue[tuple[str, str, bytes]] = asyncio.Queue()
        self.answers: asyncio.Queue[PapAnswer | Exception] = asyncio.Queue()

    async def _hear(self, url: str, content_type: str, body: bytes) -> PapAnswer:
        """An initiator is told something, and answers when the test says what."""
        self.told.put_nowait((url, content_type, body))
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def connect(self, name: str) -> Line:
        line = Line()
        self.engine.opened(line)
        hello = Hello(app="default", device=name, window=Credit(100, 1 << 20))
        self.engine.received(line, [hello])
        await line.until(lambda: any(isinstance(frame, Welcome) for frame in line.sent))
        return line

    async def push(self, name: str, *bodies: bytes) -> Receipt:
        target = Target(TargetKind.DEVICE, name)
        submissions = [Submission(target=target, body=body) for body in bodies]
        return await self.engine.call(
            lambda gateway, now: gateway.publish("default", "publisher:", submissions, now)
        )
