"""Runs Mosquitto's own clients in C, for when they are faster than ours in Python.

`mosquitto_pub -l` publishes every line that it reads; `mosquitto_sub -C` ends after a number of
messages, and prints them to a file that is compared with what was sent.
"""

from __future__ import annotations

import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from bench.hop.payload import stamp
from bench.hop.processes import Failed, cpu_seconds, end, spawn

SETTLE = 0.3
"""Seconds to wait for a client to connect, since it does not report when it has."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one run: messages per second, and seconds of CPU."""

    rate: float
    broker_cpu: float
    clients_cpu: float


def run(port: int, broker: int, *, qos: int, count: int, window: int, directory: Path) -> Outcome:
    """Publish `count` messages at a quality of service through the broker with process id
    `broker`."""
    lines = b"".join(stamp(number) + b"\n" for number in range(count))
    where = ["-h", "127.0.0.1", "-p", str(port), "-t", f"c{qos}", "-q", str(qos)]
    received = directory / f"c{qos}.received"
    received.unlink(missing_ok=True)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    device = spawn(["mosquitto_sub", *where, "-C", str(count)], log=received)
    publisher = subprocess.Popen(
        ["mosquitto_pub", *where, "-l", "-M", str(window)], stdin=subprocess.PIPE
    )
    try:
        time.sleep(SETTLE)
        cpu, started = cpu_seconds(broker), time.monotonic()
        assert publisher.stdin is not None
        publisher.stdin.write(lines)
        publisher.stdin.close()
        device.wait(60)
        took = time.monotonic() - started
        publisher.wait(10)
    except (subprocess.TimeoutExpired, BrokenPipeError) as error:
        raise Failed(f"Mosquitto's own clients did not finish: {error}") from None
    finally:
        end(publisher)
        end(device)
    if received.read_bytes() != lines:
        raise Failed("Mosquitto's own clients received something else than was sent")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    clients = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    return Outcome(count / took, cpu_seconds(broker) - cpu, clients)
