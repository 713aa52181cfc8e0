"""A foreman and a real worker, with the gateway's part in the test's hands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lasthop.core.effects import Consult
from lasthop.runtime.surrogates.duty import Duty, Launch
from lasthop.runtime.surrogates.supervisor import WorkerSupervisor
from lasthop.surrogate import frames
from lasthop.surrogate.mail import Content, Mail, Verdict, Way
from tests.runtime.processes import eventually
from tests.runtime.surrogates.test_isolation import HERE

PATIENCE = 60.0


class Recorder:
    """Hears what a gateway would hear."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[tuple[int, Verdict | str, bool]] = asyncio.Queue()
        self.refusal: str | None = None
        self.state: dict[str, bytes] = {}

    def consulted(self, app: str, number: int, verdict: Verdict) -> str | None:
        refusal, self.refusal = self.refusal, None
        if refusal is None:
            self.state |= verdict.state
        self.heard.put_nowait((number, verdict, refusal is None))
        return refusal

    def consult_failed(self, app: str, number: int, reason: str, *, hopeless: bool) -> None:
        self.heard.put_nowait((number, reason, hopeless))

    def surrogate_state(self, app: str) -> dict[str, bytes]:
        return self.state

    async def next(self) -> tuple[int, Verdict | str, bool]:
        return await asyncio.wait_for(self.heard.get(), PATIENCE)


@asynccontextmanager
async def employed(name: str, recorder: Recorder) -> AsyncIterator[WorkerSupervisor]:
    launch = Launch("app", f"villains:{name}", 1 << 30, str(HERE))
    supervisor = WorkerSupervisor(Duty(launch, 20.0, 1 << 20), recorder, lambda: 0.0)
    supervisor.start()
    try:
        yield supervisor
    finally:
        await supervisor.stop()


def mail(number: int, body: bytes = b"hello") -> Mail:
    return Mail(number, Way.TO_DEVICE, "phone", number, Content(body), 0)


async def titles(recorder: Recorder, count: int) -> list[str | None]:
    """What the counting surrogate called the next messages."""
    found = []
    for _ in range(count):
        _, verdict, _ = await recorder.next()
        assert isinstance(verdict, Verdict)
        assert verdict.content is not None
        found.append(verdict.content.title)
    return found


async def test_what_is_given_before_the_worker_is_there_waits_for_it() -> None:
    recorder = Recorder()
    async with employed("Good", recorder) as supervisor:
        supervisor.consult(Consult("app", [mail(1), mail(2)]))
        assert await titles(recorder, 2) == ["1", "2"]
        supervisor.consult(Consult("app", [mail(3)]))
        assert await titles(recorder, 1) == ["3"]


async def test_a_refused_verdict_leaves_the_rest_and_the_state_as_it_was() -> None:
    recorder = Recorder()
    async with employed("Good", recorder) as supervisor:
        supervisor.consult(Consult("app", [mail(1)]))
        assert await titles(recorder, 1) == ["1"]
        recorder.refusal = "no"
        supervisor.consult(Consult("app", [mail(2), mail(3), mail(4)]))
        assert (await recorder.next())[2] is False
        supervisor.consult(Consult("app", [mail(2)]))
        assert await titles(recorder, 1) == ["2"]
        assert recorder.heard.empty()


async def test_what_is_too_long_for_a_frame_is_without_hope(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = Recorder()
    async with employed("Good", recorder) as supervisor:
        supervisor.consult(Consult("app", [mail(1)]))
        assert await titles(recorder, 1) == ["1"]
        monkeypatch.setattr(frames, "MAX_FRAME", 5000)
        supervisor.consult(Consult("app", [mail(2, bytes(10_000))]))
        number, reason, hopeless = await recorder.next()
        assert (number, hopeless) == (2, True)
        assert "too many for one frame" in str(reason)
        supervisor.consult(Consult("app", [mail(3)]))
        assert await titles(recorder, 1) == ["2"]


async def test_a_worker_that_is_killed_between_two_inputs_is_replaced_unnoticed() -> None:
    recorder = Recorder()
    async with employed("Good", recorder) as supervisor:
        supervisor.consult(Consult("app", [mail(1)]))
        assert await titles(recorder, 1) == ["1"]
        pid = supervisor.pid
        assert pid is not None
        os.kill(pid, 9)
        await asyncio.to_thread(
            eventually, lambda: supervisor.pid not in (pid, None), "there is another worker"
        )
        supervisor.consult(Consult("app", [mail(2)]))
        assert await titles(recorder, 1) == ["2"]
        assert supervisor.restarts == 1
        assert supervisor.last_failure == ""


async def test_without_a_class_there_is_no_hope() -> None:
    recorder = Recorder()
    async with employed("Nobody", recorder) as supervisor:
        supervisor.consult(Consult("app", [mail(1)]))
        assert await recorder.next() == (1, "it cannot be loaded: villains has no Nobody", True)
        assert (supervisor.state, supervisor.broken) == ("broken", "villains has no Nobody")
