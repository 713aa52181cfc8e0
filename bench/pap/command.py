"""Runs `lasthop bench pap`: our gateway and Kannel's in turn, and the encoder of binary XML."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import httpx
import msgspec
from rich.console import Console
from rich.table import Table

from bench.hop.gateway import gateway
from bench.hop.processes import Child, Failed, cpu_seconds, heed_termination
from bench.pap.jobs import Arrived, Expect, Initiator, Ready, Sink, Submit, Submitted
from bench.pap.kannel import installed, kannel
from bench.pap.payload import document
from bench.pap.results import DOCUMENTS_A_SECOND, Encoding, Latency, Report, Row, Run, percentile
from lasthop import __version__
from lasthop.wire.wbxml.encoder import encode
from lasthop.wire.wbxml.languages import SI
from lasthop.wire.wbxml.validity import check
from lasthop.wire.wbxml.xml_reader import read_xml

PUSH_PORT = 2948
CLIENTS = 64
GRACE = 5.0
"""Seconds after the last answer in which a datagram may still arrive; later ones count as lost."""

WARM_UP = 1000
"""Pushes before the first round, so that no gateway is measured while it loads code."""


class System(msgspec.Struct, frozen=True):
    """A running gateway to measure."""

    port: int
    path: str
    pids: tuple[int, ...]
    row: Row


def run(
    *,
    pushes: int,
    rounds: int,
    rates: Sequence[float],
    seconds: float,
    connections: int,
    only: Sequence[str],
    directory: Path | None,
    as_json: bool,
) -> int:
    """Measure and print; return the exit status."""
    heed_termination()
    if "kannel" in only and not installed():
        sys.stderr.write("lasthop bench: not installed: kannel (apt-get install kannel)\n")
        return 1
    try:
        with tempfile.TemporaryDirectory(prefix="lasthop-pap-", dir=directory) as place:
            report = measure(
                Path(place),
                pushes=pushes,
                rounds=rounds,
                rates=rates,
                seconds=seconds,
                connections=connections,
                only=only,
            )
    except Failed as error:
        sys.stderr.write(f"lasthop bench: {error}\n")
        return 1
    if as_json:
        sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    else:
        show(report, Console(width=110, highlight=False))
    return 0 if report.met else 1


def measure(
    place: Path,
    *,
    pushes: int,
    rounds: int,
    rates: Sequence[float],
    seconds: float,
    connections: int,
    only: Sequence[str],
) -> Report:
    """Measure every gateway in turn, round by round, on the same pushes."""
    hosts = [f"127.77.{n // 250}.{n % 250 + 1}" for n in range(CLIENTS)]
    cores = sorted(os.sched_getaffinity(0))
    one_core = len(cores) > 1 and shutil.which("taskset") is not None
    pinned = ["taskset", "-c", str(cores[0])] if one_core else []
    with ExitStack() as stack:
        clients = Child("bench.pap.sink", Sink(PUSH_PORT), log=place / "sink.log")
        stack.callback(clients.end)
        clients.hear(Ready)
        systems = []
        if "lasthop" in only:
            systems.append(stack.enter_context(_ours(place / "lasthop", hosts, pinned)))
        if "kannel" in only:
            systems.append(stack.enter_context(_kannel(place / "kannel", pinned)))
        benches = [
            stack.enter_context(_Bench.of(system, clients, hosts, connections, place))
            for system in systems
        ]
        if one_core:
            for pid in (clients.pid, *(bench.pid for bench in benches)):
                os.sched_setaffinity(pid, set(cores[1:]))
        for bench in benches:
            bench.throughput(WARM_UP)
        for _ in range(rounds):
            for bench in benches:
                bench.system.row.runs.append(bench.throughput(pushes))
        for rate in rates:
            for bench in benches:
                bench.system.row.latencies.append(bench.latency(rate, int(rate * seconds)))
    return Report(
        platform.python_version(),
        pushes,
        connections,
        one_core,
        [system.row for system in systems],
        encoding(),
    )


@contextmanager
def _ours(data: Path, hosts: list[str], pinned: list[str]) -> Iterator[System]:
    with gateway(data) as found:
        if pinned:
            _pin(found.broker.pid, int(pinned[-1]))
        _register(found.http, hosts)
        promise = "durable before the answer, SQLite synchronous=FULL"
        row = Row(f"lasthop {__version__}", promise)
        yield System(found.http, "/pap", (found.broker.pid,), row)


def _pin(pid: int, core: int) -> None:
    """Pin all threads of a process to a core; later threads inherit it."""
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), {core})


def _register(port: int, hosts: list[str]) -> None:
    """Register the clients that are reached by datagrams at their push port."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
        for number, host in enumerate(hosts):
            device = {
                "name": f"client-{number}",
                "addresses": [f"IPv4:{host}"],
                "routes": [{"variant": "wsp", "address": host}],
            }
            http.post("/v1/devices", json=device).raise_for_status()


@contextmanager
def _kannel(directory: Path, pinned: list[str]) -> Iterator[System]:
    with kannel(directory, pinned=pinned) as found:
        row = Row(f"Kannel {found.version}", "in memory only")
        yield System(found.port, found.path, found.pids, row)


class _Bench:
    """A push initiator in front of one gateway, and the clients behind it."""

    def __init__(self, system: System, clients: Child, hosts: list[str], child: Child) -> None:
        self.system = system
        self._clients = clients
        self._hosts = hosts
        self._child = child
        self._next = 0
        self._run = f"{os.getpid()}-{time.time_ns()}"

    @classmethod
    @contextmanager
    def of(
        cls, system: System, clients: Child, hosts: list[str], connections: int, place: Path
    ) -> Iterator[_Bench]:
        job = Initiator(system.port, system.path, connections)
        child = Child("bench.pap.initiator", job, log=place / "initiator.log")
        try:
            child.hear(Ready)
            yield cls(system, clients, hosts, child)
        finally:
            child.end()

    @property
    def pid(self) -> int:
        """Return the process id of the initiator."""
        return self._child.pid

    def throughput(self, count: int) -> Run:
        """Measure the throughput: submit pushes as fast as they are accepted."""
        before = self._cpu()
        submitted, arrived = self._submit(count, 0.0)
        cpu = self._cpu() - before
        begin = min(submitted.began.values())
        answered = max(submitted.answered.values()) - begin
        last = max(arrived.times.values(), default=begin)
        return Run(
            submissions=count / answered,
            pushes=len(arrived.times) / max(last - begin, answered),
            cpu=cpu / count * 1e6,
            missing=count - len(arrived.times),
            duplicates=arrived.duplicates,
            refused=submitted.refused,
        )

    def latency(self, rate: float, count: int) -> Latency:
        """Measure the latency at a steady rate, from when each push was due."""
        submitted, arrived = self._submit(count, rate)
        began = submitted.began
        answers = [(at - began[n]) * 1e3 for n, at in submitted.answered.items()]
        air = [(at - began[n]) * 1e3 for n, at in arrived.times.items()]
        if not air:
            raise Failed(f"no push of {self.system.row.label} arrived at a client")
        return Latency(
            rate,
            median(answers),
            percentile(answers, 0.99),
            median(air),
            percentile(air, 0.99),
            count - len(air),
        )

    def _submit(self, count: int, rate: float) -> tuple[Submitted, Arrived]:
        first, self._next = self._next, self._next + count
        self._child.tell(Submit(self._run, first, count, self._hosts, rate))
        submitted = self._child.hear(Submitted, seconds=300)
        self._clients.tell(Expect(count, GRACE))
        if submitted.refused:
            raise Failed(f"{self.system.row.label} refused a push: {submitted.why}")
        return submitted, self._clients.hear(Arrived, seconds=300)

    def _cpu(self) -> float:
        return sum(cpu_seconds(pid) for pid in self.system.pids)


def encoding(documents: int = 4000) -> Encoding:
    """Measure how fast service indications are encoded as binary XML, on this core, best of
    three."""
    texts = [document(number).encode() for number in range(documents)]

    def from_text() -> None:
        for text in texts:
            found = read_xml(text, language=SI)
            check(found)
            encode(found)

    parsed = [read_xml(text, language=SI) for text in texts]

    def from_document() -> None:
        for found in parsed:
            encode(found)

    return Encoding(_rate(from_text, documents), _rate(from_document, documents))


def _rate(work: Callable[[], None], count: int) -> float:
    best = min(_seconds(work) for _ in range(3))
    return count / best


def _seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def show(report: Report, console: Console) -> None:
    """Print the report as tables."""
    cores = "every gateway on one core, everything else on the others" if report.one_core else ""
    table = Table(
        title=f"{report.pushes} pushes, {report.connections} connections; {cores}",
        title_justify="left",
    )
    for name in ("gateway", "submissions/s", "on the air/s", "CPU µs/push", "lost", "promise"):
        table.add_column(name, justify="left" if name in ("gateway", "promise") else "right")
    for row in report.rows:
        table.add_row(
            row.label,
            f"{row.submissions:,.0f}",
            f"{row.pushes:,.0f}",
            f"{row.cpu:,.0f}",
            str(row.lost),
            row.promise,
        )
    console.print(table)
    if any(row.latencies for row in report.rows):
        console.print(_latencies(report))
    encoding = report.encoding
    console.print(
        f"binary XML: {encoding.from_text:,.0f} documents/s from text, checked by their DTD "
        f"(goal {DOCUMENTS_A_SECOND:,}); {encoding.from_document:,.0f} from parsed documents"
    )
    if report.ratio is not None:
        console.print(f"lasthop / Kannel: {report.ratio:.2f} times as many pushes a second")
    console.print("the goals are met" if report.met else "the goals are NOT met")


def _latencies(report: Report) -> Table:
    table = Table(title="milliseconds from when a push was due", title_justify="left")
    names = ("gateway", "pushes/s", "answer 50 %", "answer 99 %", "on the air 50 %", "99 %")
    for name in names:
        table.add_column(name, justify="left" if name == "gateway" else "right")
    for row in report.rows:
        for each in row.latencies:
            table.add_row(
                row.label,
                f"{each.rate:,.0f}",
                f"{each.answer_median:.1f}",
                f"{each.answer_99:.1f}",
                f"{each.air_median:.1f}",
                f"{each.air_99:.1f}",
            )
    return table
