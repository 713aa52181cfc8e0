"""Measures what ten thousand idle devices cost: `lasthop bench idle`.

Two gateways have the same settings, one with ten devices and one with thousands; in both, one of
the devices receives messages, in turn. The idle devices connect one after the other over a whole
heartbeat interval, so that their heartbeats are spread out like those of unrelated devices.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
from rich.console import Console

from bench.hop.conversation import Ready
from bench.hop.gateway import Gateway, gateway, ours
from bench.hop.jobs import Alive, Count, Crowd, HopDevice
from bench.hop.pair import Pair, paired
from bench.hop.processes import Child, Failed, heed_termination, memory
from bench.hop.results import percentile

FEW = 10
"""Devices of the gateway that the other one is compared with."""

PER_PROCESS = 2500
"""Idle devices of one process, and of one source address."""

HEARTBEAT_SLACK = 3.0
"""Seconds that a heartbeat may come late: links keep time to the second, and the machine is
shared."""

MEMORY_GOAL = 4096
MEDIAN_GOAL = 1.10
P99_GOAL = 1.25


class Verdict(NamedTuple):
    """Whether one goal was reached, with the numbers."""

    reached: bool
    numbers: str
    conclusive: bool = True
    """Whether the machine was quiet enough for a result."""

    @property
    def word(self) -> str:
        """Return the verdict in a word; on a noisy machine the goal counts neither as reached nor
        as missed."""
        if not self.conclusive:
            return "UNCLEAR"
        return "PASS" if self.reached else "FAIL"


class Idle(msgspec.Struct, kw_only=True):
    """The results of the benchmark. Latencies are in microseconds, one for each round."""

    devices: int
    stored_bytes: float
    """Bytes of the gateway's memory for a device that is known and not connected."""
    connection_bytes: float
    """Bytes of memory that a connection takes beyond the stored state."""
    heartbeat: int
    """Seconds between heartbeats of an idle device."""
    seconds: float
    """Seconds that the devices stayed connected."""
    connected: int
    pongs: int
    """Heartbeats that were answered."""
    longest_gap: float
    """Seconds between two heartbeats of the device that waited longest."""
    few_median: list[float]
    many_median: list[float]
    few_p99: list[float]
    many_p99: list[float]

    @property
    def median_ratio(self) -> float:
        """Return the latency with many devices as a multiple of that with few, by the medians."""
        return median(self.many_median) / median(self.few_median)

    @property
    def p99_ratio(self) -> float:
        """Return the latency with many devices as a multiple of that with few, by the p99s."""
        return median(self.many_p99) / median(self.few_p99)

    def verdicts(self) -> Iterator[Verdict]:
        """Yield for every goal whether it was reached, and the numbers."""
        yield Verdict(
            self.connection_bytes <= MEMORY_GOAL,
            f"{self.connection_bytes:,.0f} bytes a connection (at most {MEMORY_GOAL:,}), "
            f"beyond the {self.stored_bytes:,.0f} of its stored state",
        )
        yield Verdict(
            self.connected == self.devices and self.longest_gap <= self.heartbeat + HEARTBEAT_SLACK,
            f"{self.connected:,} of {self.devices:,} still connected after {self.seconds:.0f} s; "
            f"{self.pongs:,} heartbeats answered, never more than {self.longest_gap:.1f} s apart "
            f"(every {self.heartbeat} s, at most {HEARTBEAT_SLACK:g} s late)",
        )
        for name, ratio, few, many, goal in (
            ("median", self.median_ratio, self.few_median, self.many_median, MEDIAN_GOAL),
            ("p99", self.p99_ratio, self.few_p99, self.many_p99, P99_GOAL),
        ):
            noise = max(spread(few), spread(many))
            yield Verdict(
                ratio <= goal,
                f"{name} {median(many):,.0f} µs against {median(few):,.0f} µs "
                f"with {FEW} devices: {ratio:.2f} x (at most {goal:.2f}); "
                f"rounds of one side lie within {noise:.2f} x",
                conclusive=noise <= goal,
            )


def run(
    *,
    devices: int,
    rounds: int,
    rate: float,
    seconds: float,
    heartbeat: int,
    directory: Path | None = None,
    as_json: bool = False,
) -> int:
    """Measure and print; return the exit status, 0 only if every goal was conclusively reached."""
    said = Console(stderr=True, highlight=False)
    heed_termination()
    with tempfile.TemporaryDirectory(prefix="lasthop-bench-", dir=directory) as place:
        try:
            result = Benchmark(Path(place), heartbeat=heartbeat, console=said).measure(
                devices=devices, rounds=rounds, rate=rate, seconds=seconds
            )
        except Failed as error:
            said.print(f"lasthop bench: {error}")
            return 1
    verdicts = list(result.verdicts())
    if as_json:
        told = {verdict.numbers: verdict.word for verdict in verdicts}
        sys.stdout.write(msgspec.json.encode((result, told)).decode() + "\n")
    else:
        console = Console(highlight=False, soft_wrap=True)
        console.print(f"{devices:,} idle devices on one gateway, load {os.getloadavg()[0]:.1f}")
        for verdict in verdicts:
            console.print(f"{verdict.word:7}  {verdict.numbers}")
    return 0 if all(verdict.word == "PASS" for verdict in verdicts) else 1


def spread(rounds: Sequence[float]) -> float:
    """Return the spread of the middle half of the rounds: the noise of repeated measurements.

    >>> spread([100, 100, 110, 120, 900])
    1.2
    """
    ordered = sorted(rounds)
    quarter = len(ordered) // 4
    return ordered[-1 - quarter] / ordered[quarter]


class Benchmark:
    """Runs the two gateways and their devices."""

    def __init__(self, directory: Path, *, heartbeat: int, console: Console) -> None:
        self._directory = directory
        self._heartbeat = heartbeat
        self._console = console

    def measure(self, *, devices: int, rounds: int, rate: float, seconds: float) -> Idle:
        """Run all measurements, and return the results."""
        with ExitStack() as stack:
            stored = self._introduce(devices)
            many = stack.enter_context(self._gateway("many"))
            with paired(ours(many, inbox=None), "warm", directory=self._directory) as pair:
                pair.run(500, rate=rate)
            before = memory(many.broker.pid)
            crowds = stack.enter_context(self._crowd(many, devices - 1, spread=self._heartbeat))
            joined = time.monotonic()
            self._console.print(f"{devices:,} devices connected")
            time.sleep(2)
            each = (memory(many.broker.pid) - before) / (devices - 1)

            few = stack.enter_context(self._gateway("few"))
            stack.enter_context(self._crowd(few, FEW - 1))
            sides = {
                "few": stack.enter_context(self._pair(few)),
                "many": stack.enter_context(self._pair(many)),
            }
            medians: dict[str, list[float]] = {"few": [], "many": []}
            p99s: dict[str, list[float]] = {"few": [], "many": []}
            for number in range(1, rounds + 1):
                for side, pair in sides.items():
                    delays = pair.run(int(rate * seconds), rate=rate).delays
                    medians[side].append(median(delays) * 1e6)
                    p99s[side].append(percentile(delays, 99) * 1e6)
                    self._console.print(
                        f"round {number}: {side}: median {medians[side][-1]:,.0f} µs, "
                        f"p99 {p99s[side][-1]:,.0f} µs"
                    )
            left = joined + 3 * self._heartbeat - time.monotonic()
            if left > 0:
                self._console.print(f"waiting for heartbeats, {left:.0f} s")
                time.sleep(left)
            alive = self._alive(crowds)
            stayed = time.monotonic() - joined
        return Idle(
            devices=devices,
            stored_bytes=stored,
            connection_bytes=each,
            heartbeat=self._heartbeat,
            seconds=stayed,
            connected=alive.connected + 1,
            pongs=alive.pongs,
            longest_gap=alive.longest_gap,
            few_median=medians["few"],
            many_median=medians["many"],
            few_p99=p99s["few"],
            many_p99=p99s["many"],
        )

    def _introduce(self, devices: int) -> float:
        """Register the devices, so that later only the connection is measured; return the bytes
        that a restarted gateway needs for each."""
        with self._gateway("many") as fresh:
            empty = memory(fresh.broker.pid)
            with self._crowd(fresh, devices - 1):
                self._console.print(f"{devices:,} devices introduced")
        with self._gateway("many") as known:
            time.sleep(1)
            return max(0.0, (memory(known.broker.pid) - empty) / devices)

    @contextmanager
    def _gateway(self, name: str) -> Iterator[Gateway]:
        environment = {"LASTHOP_LIMITS_HEARTBEAT": f"{self._heartbeat}s"}
        with gateway(self._directory / name, environment=environment) as running:
            yield running

    @contextmanager
    def _pair(self, running: Gateway) -> Iterator[Pair]:
        with paired(ours(running, inbox=None), "busy", directory=self._directory) as pair:
            pair.run(200, rate=200)
            yield pair

    @contextmanager
    def _crowd(self, running: Gateway, count: int, *, spread: float = 0.0) -> Iterator[list[Child]]:
        like = HopDevice(port=running.broker.port, device="")
        crowds: list[Child] = []
        each = spread / -(-count // PER_PROCESS)
        try:
            for start in range(0, count, PER_PROCESS):
                source = f"127.0.0.{2 + start // PER_PROCESS}"
                size = min(PER_PROCESS, count - start)
                job = Crowd(like=like, count=size, source=source, spread=each)
                log = self._directory / f"crowd-{source}.log"
                crowds.append(Child("bench.hop.crowd", job, log=log))
                crowds[-1].hear(Ready, seconds=300)
            yield crowds
        finally:
            for crowd in crowds:
                crowd.end()

    def _alive(self, crowds: Sequence[Child]) -> Alive:
        total = Alive(connected=0, pongs=0, longest_gap=0.0)
        for crowd in crowds:
            crowd.tell(Count())
            one = crowd.hear(Alive)
            total.connected += one.connected
            total.pongs += one.pongs
            total.longest_gap = max(total.longest_gap, one.longest_gap)
        return total
