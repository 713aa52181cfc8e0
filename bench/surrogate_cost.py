"""Measures what a surrogate costs: the same messages to the same device, with and without one.

    python -m bench.surrogate_cost --messages 5000 --rounds 5

One gateway has three apps: one without a surrogate, one whose surrogate relays everything, and one
whose surrogate counts in its state and gives each message a title. Every app has a turn in every
round. Throughput: batches of 100 over HTTP, until the device has received all of them; the
processor time is that of the gateway and of the app's worker. Latency: one message after the other,
from the request to the device.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lasthop.device.client import Device
from lasthop.surrogate import Decision, Mail, Relay, Surrogate

BATCH = 100
APPS = {"none": None, "relays": "lasthop.surrogate:Surrogate", "counts": "surrogate_cost:Counting"}
TICKS = os.sysconf("SC_CLK_TCK")


class Counting(Surrogate):
    """A surrogate that counts messages and gives each a title."""

    def to_device(self, mail: Mail) -> Decision | None:
        count = self.state["count"] = self.state.get("count", 0) + 1
        return Relay(title=str(count))


@dataclass
class Figures:
    """The measurements of one app."""

    rates: list[float] = field(default_factory=list)
    gateway: list[float] = field(default_factory=list)
    worker: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)


class Gateway:
    """A gateway in a process of its own."""

    def __init__(self, directory: Path) -> None:
        config = directory / "lasthop.toml"
        config.write_text(
            "".join(
                f'[surrogates.{app}]\nclass = "{place}"\npath = "{Path(__file__).parent}"\n'
                for app, place in APPS.items()
                if place is not None
            )
        )
        command = [sys.executable, "-m", "lasthop", "up", "--json", "--config", str(config)]
        command += ["--data", str(directory / "data"), "--http", "127.0.0.1:0"]
        with (directory / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--tcp", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=log
            )
        assert self.process.stdout is not None
        self.places: dict[str, Any] = json.loads(self.process.stdout.readline())
        self._http = http.client.HTTPConnection(self.places["http"].removeprefix("http://"))

    def ask(self, method: str, path: str, body: object = None, app: str = "default") -> Any:
        data = None if body is None else json.dumps(body)
        self._http.request(method, path, data, {"X-App": app, "Content-Type": "application/json"})
        response = self._http.getresponse()
        answer = response.read()
        assert response.status < 300, answer
        return json.loads(answer)

    def worker(self, app: str) -> int | None:
        if APPS[app] is None:
            return None
        while (pid := self.ask("GET", f"/v1/surrogates/{app}")["pid"]) is None:
            time.sleep(0.05)
        return int(pid)


def processor_seconds(pid: int | None) -> float:
    """Return the processor seconds that a process has used so far."""
    if pid is None:
        return 0.0
    parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / TICKS


async def measure(
    gateway: Gateway, app: str, device: Device, figures: Figures, messages: int, singles: int
) -> None:
    """Measure one turn of one app."""
    arrivals = device.messages()
    worker = gateway.worker(app)
    turn = f"{app}-{len(figures.rates)}-{os.urandom(4).hex()}-"
    before = processor_seconds(gateway.process.pid), processor_seconds(worker)
    start = time.perf_counter()

    def publish() -> None:
        body = f"{turn}all".ljust(256, "x")
        for _ in range(messages // BATCH):
            gateway.ask("POST", "/v1/messages", [{"device": app, "body": body}] * BATCH, app)

    async def until(beginning: str) -> None:
        """Wait for a message that begins with `beginning`, skipping messages of an earlier turn."""
        while not (await anext(arrivals)).text.startswith(beginning):
            pass

    publishing = asyncio.create_task(asyncio.to_thread(publish))
    for _ in range(messages // BATCH * BATCH):
        await until(f"{turn}all")
    seconds = time.perf_counter() - start
    await publishing
    figures.rates.append(messages / seconds)
    used = processor_seconds(gateway.process.pid) - before[0]
    figures.gateway.append(used / messages * 1e6)
    figures.worker.append((processor_seconds(worker) - before[1]) / messages * 1e6)
    for n in range(singles):
        start = time.perf_counter()
        message = {"device": app, "body": f"{turn}{n}.".ljust(256, "x")}
        sent = asyncio.create_task(
            asyncio.to_thread(gateway.ask, "POST", "/v1/messages", message, app)
        )
        await until(f"{turn}{n}.")
        figures.latencies.append((time.perf_counter() - start) * 1e3)
        await sent
    await arrivals.aclose()


async def compare(messages: int, rounds: int, singles: int) -> dict[str, Figures]:
    """Give every app a turn in every round; the first round warms up."""
    with tempfile.TemporaryDirectory() as directory:
        gateway = Gateway(Path(directory))
        figures = {app: Figures() for app in APPS}
        try:
            for turn in range(rounds + 1):
                for app in APPS:
                    async with Device(gateway.places["tcp"], app=app, name=app) as device:
                        await device.contact(timeout=30)
                        into = figures[app] if turn else Figures()
                        await measure(gateway, app, device, into, messages, singles)
        finally:
            gateway.process.terminate()
            gateway.process.wait()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--singles", type=int, default=200, help="messages for the latency, in every round"
    )
    options = parser.parse_args()
    figures = asyncio.run(compare(options.messages, options.rounds, options.singles))
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; medians of {options.rounds}")
    print("surrogate   messages/s   gateway us   worker us   latency ms   p99 ms")
    for app, found in figures.items():
        latencies = sorted(found.latencies)
        print(
            f"{app:10s} {statistics.median(found.rates):12.0f}"
            f" {statistics.median(found.gateway):12.0f} {statistics.median(found.worker):11.0f}"
            f" {statistics.median(latencies):12.2f} {latencies[int(len(latencies) * 0.99)]:8.2f}"
        )


if __name__ == "__main__":
    main()
