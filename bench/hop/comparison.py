"""The comparison itself: every system in every round, one after the other.

Systems take turns, so that a machine that slows down slows all of them down. The result is the
median of the rounds with the lowest and the highest; the reason of a system that fails is reported
and the others continue.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bench.hop import cclients
from bench.hop.conversation import Ready
from bench.hop.jobs import Count, Counted, Crowd, Listening, Relay
from bench.hop.pair import Pair, Run, paired
from bench.hop.payload import SIZE
from bench.hop.processes import Child, Failed, memory
from bench.hop.results import Latency, Report, Row, Wire
from bench.hop.systems import System

Say = Callable[[str], None]


class Plan:
    """How much of everything is measured, the same for every system."""

    def __init__(
        self,
        *,
        messages: int = 40_000,
        rounds: int = 3,
        rates: Sequence[float] = (500, 2000),
        seconds: float = 4.0,
        idle: int = 1000,
    ) -> None:
        self.messages = messages
        self.rounds = rounds
        self.rates = tuple(rates)
        self.seconds = seconds
        self.idle = idle
        self.warm_up = max(500, messages // 10)


def compare(systems: Sequence[System], plan: Plan, *, directory: Path, say: Say) -> Report:
    """Measure every system and return the report."""
    rows = {system.key: Row.of(system) for system in systems}
    load = os.getloadavg()[0]
    idle(systems, rows, plan, directory=directory, say=say)
    with ExitStack() as stack:
        pairs: dict[str, Pair] = {}
        for system in systems:
            with noted(rows[system.key], say):
                pair = stack.enter_context(paired(system, "bench", directory=directory))
                pair.run(plan.warm_up)
                pairs[system.key] = pair
        rounds(pairs, rows, plan, directory=directory, say=say)
    for system in systems:
        if system.throughput_only or rows[system.key].failure:
            continue
        with noted(rows[system.key], say):
            say(f"{system.label}: bytes on the wire")
            rows[system.key].wire = wire(system, directory=directory)
    return Report.of(list(rows.values()), load_before=load, load_after=os.getloadavg()[0])


def idle(
    systems: Sequence[System], rows: dict[str, Row], plan: Plan, *, directory: Path, say: Say
) -> None:
    """Measure the memory of idle connections, once a broker, before any load leaves it memory to
    reuse."""
    known: dict[int, float] = {}
    for system in systems:
        with noted(rows[system.key], say):
            pid = system.broker.pid
            if pid not in known:
                known[pid] = idle_bytes(system, plan.idle, directory=directory)
                say(f"{system.broker.name}: {known[pid]:,.0f} bytes an idle connection")
            rows[system.key].idle_bytes = known[pid]


def rounds(
    pairs: dict[str, Pair], rows: dict[str, Row], plan: Plan, *, directory: Path, say: Say
) -> None:
    """Measure throughput and latency of every system, round by round."""
    blasts: dict[str, list[Run]] = {key: [] for key in pairs}
    paced: dict[tuple[str, float], list[Run]] = {}
    for number in range(1, plan.rounds + 1):
        for key, pair in working(pairs, rows):
            with noted(rows[key], say):
                run = pair.run(plan.messages)
                blasts[key].append(run)
                say(f"round {number}: {pair.system.label}: {run.rate:,.0f} messages/s")
                own_clients(pair.system, rows[key], plan, directory=directory, say=say)
        for rate in plan.rates:
            for key, pair in working(pairs, rows):
                if pair.system.throughput_only:
                    continue
                with noted(rows[key], say):
                    run = pair.run(int(rate * plan.seconds), rate=rate)
                    paced.setdefault((key, rate), []).append(run)
                    say(
                        f"round {number}: {pair.system.label} at {rate:g}/s: "
                        f"{median(run.delays) * 1e6:,.0f} µs"
                    )
    for key, runs in blasts.items():
        if runs:
            rows[key].add_throughput(runs)
    for (key, rate), runs in paced.items():
        rows[key].latency.append(Latency.of(rate, runs))


def working(pairs: dict[str, Pair], rows: dict[str, Row]) -> list[tuple[str, Pair]]:
    """Return the systems that have not failed."""
    return [(key, pair) for key, pair in pairs.items() if not rows[key].failure]


def own_clients(system: System, row: Row, plan: Plan, *, directory: Path, say: Say) -> None:
    """Measure Mosquitto again with its own clients in C; the better result is printed."""
    if not system.key.startswith("qos"):
        return
    outcome = cclients.run(
        system.broker.port,
        system.broker.pid,
        qos=int(system.key[3:]),
        count=plan.messages,
        window=system.window,
        directory=directory,
    )
    row.c_clients.append(outcome.rate)
    say(f"  with mosquitto_pub and mosquitto_sub: {outcome.rate:,.0f} messages/s")


@contextmanager
def noted(row: Row, say: Say) -> Iterator[None]:
    """Record the failure of one system, so that the others continue."""
    try:
        yield
    except Failed as error:
        row.failure = str(error)
        say(f"{row.label} FAILED: {error}")


def wire(
    system: System, *, directory: Path, warm: int = 300, alone: int = 100, bulk: int = 5000
) -> Wire:
    """Count the bytes between device and broker with a relay, both ways, for single messages and in
    bulk."""
    log = directory / f"{system.key}-relay.log"
    relay = Child("bench.hop.relay", Relay(port=system.broker.port), log=log)
    try:
        port = relay.hear(Listening).port
        with paired(system, "wire", directory=directory, port=port) as pair:
            pair.run(warm, rate=100)
            return Wire(
                alone=_overhead(relay, pair, count=alone, rate=20),
                bulk=_overhead(relay, pair, count=bulk),
            )
    finally:
        relay.end()


def _overhead(relay: Child, pair: Pair, *, count: int, rate: float = 0.0) -> float:
    before = _counted(relay)
    pair.run(count, rate=rate)
    return (_counted(relay) - before) / count - SIZE


def _counted(relay: Child) -> int:
    time.sleep(0.2)
    relay.tell(Count())
    said = relay.hear(Counted)
    return said.to_device + said.from_device


def idle_bytes(system: System, count: int, *, directory: Path) -> float:
    """Return the bytes of memory that the broker needs for one more idle connection."""
    time.sleep(0.5)
    before = memory(system.broker.pid)
    job = Crowd(like=system.device("idle", system.broker.port), count=count, source="127.0.0.2")
    crowd = Child("bench.hop.crowd", job, log=directory / f"{system.key}-idle.log")
    try:
        crowd.hear(Ready, seconds=120)
        time.sleep(1)
        return (memory(system.broker.pid) - before) / count
    finally:
        crowd.end()
