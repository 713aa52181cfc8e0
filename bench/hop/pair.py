"""A publisher and a device of one system, as processes, and the runs that they do together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.hop.conversation import Ready
from bench.hop.jobs import Expect, Prepared, Publish, Published, Received
from bench.hop.processes import ROOT, Child, Failed, cpu_seconds
from bench.hop.systems import System

SETTLE = 0.25
"""Seconds after a run in which a broker may finish delayed work; they count as its CPU time."""


@dataclass(frozen=True, slots=True)
class Run:
    """The measurements of one run."""

    count: int
    seconds: float
    """Seconds from the first message leaving its publisher to the last reaching its device."""
    confirmed: float
    """Seconds from the first message leaving its publisher to the last confirmation."""
    broker_cpu: float
    publisher_cpu: float
    device_cpu: float
    delays: list[float]
    late: list[float]

    @property
    def rate(self) -> float:
        """Return the delivered messages per second."""
        return self.count / self.seconds


class Pair:
    """Runs one load after another over the same two connections."""

    def __init__(self, system: System, publisher: Child, device: Child) -> None:
        self.system = system
        self._publisher = publisher
        self._device = device
        self._next = 0

    def run(self, count: int, *, rate: float = 0.0) -> Run:
        """Send messages and wait until they have arrived; each must come once, and in order."""
        system, first = self.system, self._next
        self._next += count
        batch, lanes = (1, count) if rate and system.ours else (system.batch, system.lanes)
        self._device.tell(
            Expect(first=first, count=count, batch=batch, lanes=lanes, delays=rate > 0)
        )
        self._device.hear(Prepared)
        self._publisher.tell(Publish(first=first, count=count, rate=rate))
        self._publisher.hear(Prepared)
        cpu = cpu_seconds(system.broker.pid)
        patience = 60 + (count / rate if rate else count / 500)
        self._publisher.tell(Prepared())
        received = self._device.hear(Received, seconds=patience, while_running=self._publisher)
        published = self._publisher.hear(Published, seconds=patience)
        time.sleep(SETTLE)
        self._check(received)
        return Run(
            count=count,
            seconds=received.last - published.started,
            confirmed=published.confirmed - published.started,
            broker_cpu=cpu_seconds(system.broker.pid) - cpu,
            publisher_cpu=published.cpu,
            device_cpu=received.cpu,
            delays=received.delays,
            late=published.late,
        )

    def _check(self, received: Received) -> None:
        faults = {
            name: count
            for name, count in (
                ("missing", received.missing),
                ("twice", received.duplicates),
                ("out of order", received.disordered),
            )
            if count
        }
        if faults:
            told = ", ".join(f"{count} {name}" for name, count in faults.items())
            raise Failed(f"{self.system.label}: {told}")


@contextmanager
def paired(
    system: System,
    name: str,
    *,
    directory: Path,
    port: int | None = None,
    checkout: Path = ROOT,
) -> Iterator[Pair]:
    """Start a publisher and a device with a topic, queue or mailbox of their own; the device uses
    the sources of `checkout`."""
    log = directory / f"{system.key}-{name}.log"
    device_job = system.device(name, system.broker.port if port is None else port)
    device = Child("bench.hop.device", device_job, log=log, checkout=checkout)
    try:
        device.hear(Ready)
        publisher = Child("bench.hop.publisher", system.publisher(name), log=log)
        try:
            publisher.hear(Ready)
            yield Pair(system, publisher, device)
        finally:
            publisher.end()
    finally:
        device.end()
