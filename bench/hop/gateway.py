"""Runs our own gateway as a process, and describes its rows of the tables."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from bench.hop.jobs import HopDevice, HttpPublisher
from bench.hop.peers import Broker
from bench.hop.processes import Failed, end, spawn
from bench.hop.systems import System
from lasthop import __version__

BATCH = 500
CONNECTIONS = 2
"""Messages in a request, and requests in flight: one is being accepted while the other is being
written. That is about as much on the way as the windows of the other systems' publishers; with
more, messages only queue up in front of the device."""

ROOM = {
    "LASTHOP_LIMITS_OPEN_PER_DEVICE": "1000000",
    "LASTHOP_QUOTAS_MESSAGES_PER_SECOND": "1000000",
    "LASTHOP_QUOTAS_MESSAGES_BURST": "1000000",
    "LASTHOP_QUOTAS_BYTES_PER_SECOND": "1GiB",
    "LASTHOP_QUOTAS_BYTES_BURST": "1GiB",
    "LASTHOP_LOG_LEVEL": "warning",
}
"""Settings without quotas, since one publisher sends everything to one device and the other systems
have no quotas either."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway of lasthop."""

    broker: Broker
    http: int
    durability: str
    data: Path


class _Ports(msgspec.Struct):
    """The fields of `ports.json` that the benchmark needs."""

    pid: int
    http: str
    tcp: str


@contextmanager
def gateway(
    data: Path, *, durability: str = "full", environment: Mapping[str, str] | None = None
) -> Iterator[Gateway]:
    """Run `lasthop up` on ports that the system chooses."""
    data.mkdir(parents=True, exist_ok=True)
    ports = data / "ports.json"
    ports.unlink(missing_ok=True)
    process = spawn(
        [
            *(sys.executable, "-m", "lasthop", "up", "--data", str(data)),
            *("--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0"),
        ],
        log=data.with_suffix(".log"),
        environment={"LASTHOP_DURABILITY": durability, **ROOM, **(environment or {})},
    )
    try:
        deadline = time.monotonic() + 60
        while not ports.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"our gateway did not start; see {data.with_suffix('.log')}")
            time.sleep(0.02)
        found = msgspec.json.decode(ports.read_bytes(), type=_Ports)
        broker = Broker("lasthop", __version__, urlsplit(found.tcp).port or 0, found.pid)
        yield Gateway(broker, urlsplit(found.http).port or 0, durability, data)
    finally:
        end(process)


def ours(gateway: Gateway, *, inbox: Path | None, single: bool = False) -> System:
    """Return a row for lasthop: with the device's inbox on disk, or in memory if `inbox` is None;
    with batches or single POSTs."""
    relaxed = gateway.durability != "full"
    key = ["lasthop", *(["relaxed"] if relaxed else [])]
    key += ["memory"] if inbox is None else []
    key += ["single"] if single else []
    before = "survives kill -9 but not power loss" if relaxed else "durable before 2xx"
    after = "device keeps nothing on disk" if inbox is None else "durable inbox on the device"
    label = "lasthop" + (", relaxed" if relaxed else "")
    label += ", inbox in memory" if inbox is None else ", durable on both ends"
    if relaxed and inbox is not None:
        label = "lasthop, relaxed, inbox on disk"
    if single:
        label += ", single POSTs"
    job = HttpPublisher(
        port=gateway.http, device="", batch=1 if single else BATCH, connections=CONNECTIONS
    )
    connections = job.single_connections if single else job.connections
    requests = "single POSTs" if single else f"NDJSON batches of {BATCH}"
    suffix = "-".join(key[1:]) or "durable"

    def device(name: str, port: int) -> HopDevice:
        place = str(inbox / f"{name}-{suffix}") if inbox is not None else None
        return HopDevice(port=port, device=f"{name}-{suffix}", inbox=place)

    return System(
        key="-".join(key),
        label=label,
        promise=f"exactly once, {before}, {after}",
        settings=(
            f"SQLite synchronous={'NORMAL' if relaxed else 'FULL'}; {requests}, {connections} "
            "requests in flight; SDK with a transactional handler; no quotas"
        ),
        broker=gateway.broker,
        window=connections,
        publisher=lambda name: msgspec.structs.replace(job, device=f"{name}-{suffix}"),
        device=device,
        batch=job.batch,
        lanes=connections,
        ours=True,
        throughput_only=single,
    )
