"""Runs a soak: a gateway for hours, with devices that come and go."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import msgspec
from rich.console import Console

from bench.hop.conversation import Ready
from bench.hop.gateway import gateway
from bench.hop.processes import Child, Failed, heed_termination
from bench.soak.flatness import Flatness, judge
from bench.soak.jobs import Arrived, Coming, Poured, Pouring, Report
from bench.soak.watching import GatewayWatch, HealthProbe, Sample

SAMPLES = 400
"""The number of samples in a run, at most one a second."""

DRAINING = 60.0
"""Seconds after the last message in which everything has to arrive."""


class Soak(msgspec.Struct, kw_only=True):
    """The result of a soak."""

    hours: float
    rate: float
    devices: int
    accepted: int
    refused: int
    delivered: int
    lost: int
    duplicated: int
    misordered: int
    contacts: int
    worst_health_ms: float
    log_bytes_per_message: float
    """The event log keeps days: it grows with the messages, by this much for each."""
    measures: dict[str, Flatness]
    flat: bool

    @property
    def good(self) -> bool:
        """Whether nothing grows, and every message arrived once and in order."""
        return self.flat and not (self.lost or self.duplicated or self.misordered or self.refused)


def run(
    *, hours: float, rate: float, devices: int, directory: Path | None = None, as_json: bool = False
) -> int:
    """Soak a gateway and print the result; return the exit status."""
    said = Console(stderr=True, highlight=False)
    heed_termination()
    with tempfile.TemporaryDirectory(prefix="lasthop-soak-", dir=directory) as place:
        try:
            result = soak(Path(place), hours=hours, rate=rate, devices=devices, console=said)
        except Failed as error:
            said.print(f"lasthop bench: {error}")
            return 1
    if as_json:
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    else:
        show(result, Console(highlight=False, soft_wrap=True))
    return 0 if result.good else 1


def soak(place: Path, *, hours: float, rate: float, devices: int, console: Console) -> Soak:
    """Run the processes, watch the gateway, and judge."""
    seconds = hours * 3600
    # What has ended is deleted soon, so that the store stops growing within the run.
    kept = f"{max(5, round(seconds / 20))}s"
    environment = {"LASTHOP_RETENTION_MESSAGES": kept, "LASTHOP_RETENTION_KEYS": kept}
    with gateway(place / "data", environment=environment) as running:
        online = min(60.0, max(1.0, seconds / 5))
        coming = Coming(port=running.broker.port, count=devices, online=online, away=online / 3)
        roamers = Child("bench.soak.devices", coming, log=place / "devices.log")
        pouring = Pouring(port=running.http, devices=devices, rate=rate)
        try:
            roamers.hear(Ready, seconds=300)
            console.print(f"{devices:,} devices came; publishing {rate:g} messages a second")
            source = Child("bench.soak.publisher", pouring, log=place / "publisher.log")
            try:
                source.hear(Ready)
                with HealthProbe(running.http) as probe:
                    watch = GatewayWatch(running, probe)
                    samples = _watch(watch, seconds, source, roamers, console)
                    worst = probe.worst
                poured = _ask(source, Poured, last=True)
                arrived = _drained(roamers, poured.accepted)
            finally:
                source.end()
        finally:
            roamers.end()
    measures = dict(judge(samples))
    return Soak(
        hours=hours,
        rate=rate,
        devices=devices,
        accepted=poured.accepted,
        refused=poured.refused,
        delivered=arrived.received,
        lost=max(0, poured.accepted - arrived.received),
        duplicated=arrived.duplicated,
        misordered=arrived.misordered,
        contacts=arrived.contacts,
        worst_health_ms=round(worst, 1),
        log_bytes_per_message=round(samples[-1].log_mb * 1e6 / max(1, poured.accepted)),
        measures=measures,
        flat=all(each.verdict != "grows" for each in measures.values()),
    )


def _ask(child: Child, kind: type[Poured], *, last: bool = False) -> Poured:
    child.tell(Report(last=last))
    return child.hear(kind)


def _watch(
    watch: GatewayWatch, seconds: float, source: Child, roamers: Child, console: Console
) -> list[Sample]:
    """Take samples for so many seconds, and say now and then how it goes."""
    interval = max(1.0, seconds / SAMPLES)
    samples = [watch.sample()]
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(interval, left))
        source.check()
        roamers.check()
        samples.append(watch.sample())
        if len(samples) % 20 == 0:
            poured, now = _ask(source, Poured), samples[-1]
            console.print(
                f"{now.at:6.0f} s: {poured.accepted:,} accepted, {now.memory_mb:.0f} MB,"
                f" {now.connections} connections, {now.descriptors} other descriptors,"
                f" /health {now.delay_ms:.1f} ms, store {now.store_mb:.0f} MB"
            )
    return samples


def _drained(roamers: Child, accepted: int) -> Arrived:
    """Let all devices come, and wait until they have everything."""
    deadline = time.monotonic() + DRAINING
    while True:
        roamers.tell(Report(last=True))
        arrived = roamers.hear(Arrived)
        if arrived.received >= accepted or time.monotonic() > deadline:
            return arrived
        time.sleep(0.2)


def show(result: Soak, console: Console) -> None:
    """Print a result for people."""
    console.print(
        f"{result.accepted:,} accepted, {result.delivered:,} delivered, {result.lost} lost,"
        f" {result.duplicated} duplicated, {result.misordered} misordered,"
        f" {result.refused} refused; {result.contacts:,} contacts of {result.devices:,} devices"
        f" in {result.hours:g} hours"
    )
    for name, each in result.measures.items():
        console.print(
            f"{each.verdict:8} {name}: mean {each.mean:g}, highest {each.highest:g},"
            f" {each.slope_per_hour:+g} an hour (grew by {each.growth:g}, allowed {each.allowed:g})"
        )
    console.print(
        f"/health took at most {result.worst_health_ms:g} ms; the event log has"
        f" {result.log_bytes_per_message:g} bytes a message"
    )
