"""Looks at a gateway's process from outside: memory, descriptors, threads, disk, and how long
`/health` takes, which waits for a turn of the event loop like everything else."""

from __future__ import annotations

import http.client
import threading
import time
from pathlib import Path

import msgspec

from bench.hop.gateway import Gateway
from bench.hop.processes import memory

PROBE_INTERVAL = 0.05
"""Seconds between two requests for `/health`."""

PATIENCE = 30.0
"""Seconds after which a request for `/health` has failed."""


class Sample(msgspec.Struct, kw_only=True):
    """What was seen at one moment."""

    at: float
    """Seconds after the beginning."""
    memory_mb: float
    descriptors: int
    """Open files that are not connections."""
    threads: int
    delay_ms: float
    """The median time of `/health` since the last sample, in milliseconds."""
    worst_ms: float
    store_mb: float
    log_mb: float
    connections: int


class HealthProbe:
    """Asks for `/health` again and again, on one connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._times: list[float] = []
        self._closing = threading.Event()
        self.worst = 0.0
        """The longest time until now, in milliseconds."""
        self.failed = 0
        self.asked = 0
        self._thread = threading.Thread(target=self._run, name="health", daemon=True)

    def __enter__(self) -> HealthProbe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()

    def take(self) -> list[float]:
        """Return the times in milliseconds since the last call, in order of size."""
        times, self._times = self._times, []
        return sorted(times)

    def _run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        while not self._closing.wait(PROBE_INTERVAL):
            began = time.perf_counter()
            self.asked += 1
            try:
                connection.request("GET", "/health")
                answer = connection.getresponse()
                answer.read()
                self.failed += answer.status != 200
            except (OSError, http.client.HTTPException):
                self.failed += 1
                connection.close()
            took = (time.perf_counter() - began) * 1e3
            self._times.append(took)
            self.worst = max(self.worst, took)
        connection.close()


class GatewayWatch:
    """Takes samples of one gateway."""

    def __init__(self, gateway: Gateway, probe: HealthProbe) -> None:
        self._gateway = gateway
        self._probe = probe
        self._began = time.monotonic()

    def sample(self) -> Sample:
        """Look at the process once."""
        pid = self._gateway.broker.pid
        connections = self._connections()
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        times = self._probe.take() or [0.0]
        log = self._gateway.data / "log"
        logged = _size(log)
        return Sample(
            at=time.monotonic() - self._began,
            memory_mb=memory(pid) / 1e6,
            descriptors=descriptors - connections,
            threads=len(list(Path(f"/proc/{pid}/task").iterdir())),
            delay_ms=times[len(times) // 2],
            worst_ms=times[-1],
            store_mb=(_size(self._gateway.data) - logged) / 1e6,
            log_mb=logged / 1e6,
            connections=connections,
        )

    def _connections(self) -> int:
        """Return the number of open connections, by the gateway's own metrics."""
        connection = http.client.HTTPConnection("127.0.0.1", self._gateway.http, timeout=PATIENCE)
        try:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        finally:
            connection.close()
        wanted = ("lasthop_connections ", "lasthop_http_connections ")
        return sum(int(float(line.split()[1])) for line in lines if line.startswith(wanted))


def _size(directory: Path) -> int:
    """Return the bytes of all files below a directory; files may vanish meanwhile."""
    total = 0
    for file in directory.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue
    return total
