"""Everybody in a run: the gateway on its small disk, devices, publishers, and a link for each."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

import msgspec

from lasthop.runtime.chaos import equipment
from lasthop.runtime.chaos.account import whole_lines
from lasthop.runtime.chaos.chaos_link import ChaosLink
from lasthop.runtime.chaos.fault_schedule import GATEWAY, FaultKind
from lasthop.runtime.chaos.movable_clock import MovableClock
from lasthop.runtime.chaos.party import Party
from lasthop.runtime.chaos.publisher import TOPIC, PublisherPlan
from lasthop.runtime.chaos.registration import ChaosRegistration
from lasthop.runtime.chaos.small_disk import SmallDisk
from lasthop.runtime.failure import Failure

STARTING = 60.0
"""Seconds that the gateway has to start on a busy machine, and then devices to get something."""

ROOM = 64 << 20
ROOM_A_SECOND = 128 << 10
"""Bytes of the gateway's disk: for a start, and for what store and log grow by in a second of a
run. Measured: some 40 KiB a second."""

LOOKING = 0.25
"""Seconds between two looks at files: they wake nobody when they change."""

CLOCK = (
    "clocks are moved with --faketime only, by a library that a user's gateway does not run with;"
    " lasthop sim moves clocks"
)

UNCHECKED = (
    "requests of publishers have no checksum without TLS; only the links of devices are corrupted"
)

DEVICES = {"phone-tcp": "tcp", "phone-ws": "ws", "phone-http": "http"}
"""Python devices and how each connects."""

JAVASCRIPT = "phone-js"
"""The JavaScript device, which connects by WebSocket."""

PUBLISHERS = {"shop": "rest", "press": "topic", "initiator": "pap"}
"""Publishers and the door of each."""

ENOUGH = "enough"
"""The file that tells publishers to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosPlan:
    """The options of one run of `lasthop chaos`."""

    seconds: float
    seed: int
    scratch: Path
    """A directory for the run alone."""
    keep: bool = False
    """Whether the files of the run are wanted at its end."""
    tls: bool = True
    faketime: Path | None = None
    """The library by which clocks are moved, if they are to be moved."""


class ChaosStage:
    """All processes and links of a run, as a context manager: in the end none of them is left."""

    def __init__(self, plan: ChaosPlan, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._say = say
        self._random = Random(plan.seed)
        self._stack = AsyncExitStack()
        self._http_port, self._tcp_port = _free_ports(2)
        self._certificate: str | None = None
        self._running: dict[str, asyncio.Task[None]] = {}
        self.disk: SmallDisk | None = None
        self.parties: dict[str, Party] = {}
        self.links: dict[str, ChaosLink] = {}
        self.devices: list[str] = list(DEVICES)
        self.ended: list[str] = []
        """What was said of processes that ended by themselves."""
        self.not_done: dict[str, str] = {}
        """Faults and parties that this machine does not allow, and why."""
        self.only: dict[FaultKind, list[str]] = {FaultKind.CLOCK: [GATEWAY, *DEVICES]}
        """Kinds of faults that not all parties can have, and who can. Publishers sleep, and with
        libfaketime 0.9.10 Python's `time.sleep` fails with EINVAL."""
        self.clocks: dict[str, MovableClock] = {}
        if plan.faketime is None:
            self.not_done[FaultKind.CLOCK] = CLOCK

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def _open(self) -> None:
        self._say("starting a gateway")
        await self._start_gateway()
        node = self._find_node()
        registration = ChaosRegistration(self._direct_url, self._certificate, STARTING)
        tokens = await asyncio.to_thread(registration.register, self.devices, TOPIC)
        self._say(f"starting {len(self.devices)} devices and {len(PUBLISHERS)} publishers")
        for name, scheme in DEVICES.items():
            await self._start_device(name, scheme, tokens[name])
        if node is not None:
            await self._start_javascript_device(node, tokens[JAVASCRIPT])
        for name, door in PUBLISHERS.items():
            await self._start_publisher(name, door)

    async def _start_gateway(self) -> None:
        config = await self._configure()
        directory = self._file("disk")
        directory.mkdir()
        room = ROOM + int(ROOM_A_SECOND * self._plan.seconds)
        try:
            self.disk = await SmallDisk.mount(directory, room)
            self._stack.push_async_callback(self.disk.detach)
        except Failure as failure:
            self.not_done[FaultKind.DISK_FULL] = str(failure)
        self._stack.push_async_callback(self._destroy)
        files = ("--data", str(directory / "data"), "--config", str(config))
        ports = ("--http", f"127.0.0.1:{self._http_port}", "--tcp", f"127.0.0.1:{self._tcp_port}")
        holder = self.disk.holder if self.disk is not None else 0
        self._start(GATEWAY, *_lasthop("up", "--json", *files, *ports), holder=holder)

    async def _configure(self) -> Path:
        """Write the gateway's settings: with a certificate, if links are to be encrypted."""
        config = self._file("gateway.toml")
        config.write_text("")
        if self._plan.tls:
            try:
                cert, key = await equipment.make_certificate(self._plan.scratch)
            except Failure as failure:
                self.not_done["tls"] = str(failure)
            else:
                self._certificate = str(cert)
                config.write_text(f'[tls]\ncert = "{cert}"\nkey = "{key}"\n')
                return config
        self.only[FaultKind.CORRUPT] = self.devices
        self.not_done["corrupt_publishers"] = UNCHECKED
        return config

    def _find_node(self) -> str | None:
        try:
            node = equipment.node()
        except Failure as failure:
            self.not_done["javascript"] = str(failure)
            return None
        self.devices.append(JAVASCRIPT)
        return node

    async def _start_device(self, name: str, scheme: str, token: str) -> None:
        identity = ("--name", name, _token(token), "--url", await self._link(name, scheme))
        ca = ("--ca", self._certificate) if self._certificate is not None else ()
        output = ("--output", str(self.output(name)))
        self._start(name, *_lasthop("device", "run", "--json", *identity, *ca, *output))

    async def _start_javascript_device(self, node: str, token: str) -> None:
        program = (node, str(equipment.JAVASCRIPT_DEVICE))
        url = await self._link(JAVASCRIPT, "ws")
        identity = ("--name", JAVASCRIPT, _token(token), "--url", url)
        files = ("--inbox", str(self._file("js.inbox")), "--output", str(self.output(JAVASCRIPT)))
        self._start(JAVASCRIPT, *program, *identity, *files)

    async def _start_publisher(self, name: str, door: str) -> None:
        plan = PublisherPlan(
            name=name,
            door=door,
            url=(await self._link(name, "http")).removesuffix("/hop"),
            account=str(self.account(name)),
            enough=str(self._file(ENOUGH)),
            devices=self.devices,
            ca=self._certificate,
        )
        path = self._file(f"{name}.json")
        path.write_bytes(msgspec.json.encode(plan))
        self._start(name, sys.executable, "-m", "lasthop.runtime.chaos.publisher", str(path))

    def _start(self, name: str, *command: str, holder: int = 0) -> None:
        environment: dict[str, str] = {}
        if self._certificate is not None:
            environment["NODE_EXTRA_CA_CERTS"] = self._certificate
        if self._plan.faketime is not None and name in self.only[FaultKind.CLOCK]:
            clock = MovableClock(self._plan.faketime, self._file(f"{name}.clock"))
            self.clocks[name] = clock
            environment.update(clock.environment)
        party = self.parties[name] = Party(
            name=name,
            command=command,
            holder=holder,
            environment=environment,
            complain=self._complain,
            note=self.note,
            log=self._file(f"{name}.log"),
        )
        self._running[name] = asyncio.ensure_future(party.keep_running())

    def _complain(self, said: str) -> None:
        self.ended.append(said)
        self._say(said)
        self.note(said)

    def note(self, event: str) -> None:
        """Write what happens into the journal of the run, which is evidence and judges nothing."""
        with self._file("journal.txt").open("a") as journal:
            journal.write(f"{datetime.now(UTC):%H:%M:%S.%f} {event}\n")

    async def _link(self, name: str, scheme: str) -> str:
        """Make the link of a device or publisher; return the URL that leads through it."""
        port = self._tcp_port if scheme == "tcp" else self._http_port
        link = ChaosLink(("127.0.0.1", port), Random(self._random.random()))
        self.links[name] = await self._stack.enter_async_context(link)
        return f"{scheme}{self._s}://127.0.0.1:{link.port}{'' if scheme == 'tcp' else '/hop'}"

    @property
    def _s(self) -> str:
        """What makes the scheme of a URL a secure one, if links are encrypted."""
        return "s" if self._certificate is not None else ""

    @property
    def _direct_url(self) -> str:
        return f"http{self._s}://127.0.0.1:{self._http_port}"

    def _file(self, name: str) -> Path:
        return self._plan.scratch / name

    def output(self, device: str) -> Path:
        """The file in which a device writes down what it gets."""
        return self._file(f"{device}.output.jsonl")

    def account(self, publisher: str) -> Path:
        """The file in which a publisher writes down what it is answered."""
        return self._file(f"{publisher}.account.jsonl")

    def counts(self) -> Counter[str]:
        """Return how many messages each device has written down."""
        return Counter({name: len(whole_lines(self.output(name))) for name in self.devices})

    async def flowing(self) -> None:
        """Wait until every device has got something: faults are for those who are at work."""
        try:
            async with asyncio.timeout(STARTING):
                while not all(self.counts().values()):  # noqa: ASYNC110
                    await asyncio.sleep(LOOKING)
        except TimeoutError:
            silent = [name for name, count in self.counts().items() if not count]
            raise Failure(f"nothing arrives at {', '.join(silent)}") from None

    def calm(self) -> None:
        """End every fault of all links and processes that still lasts."""
        for party in self.parties.values():
            party.thaw()
        for link in self.links.values():
            link.calm()
        for clock in self.clocks.values():
            clock.move(0)

    async def finish_publishers(self) -> None:
        """Wait until every publisher knows what became of its last message."""
        for name in PUBLISHERS:
            self.parties[name].finish()
        self._file(ENOUGH).touch()
        await self._all_ended(*PUBLISHERS)

    async def end(self) -> None:
        """Ask the devices and then the gateway to end, and wait until they have."""
        for names in (self.devices, [GATEWAY]):
            for name in names:
                self.parties[name].end()
            await self._all_ended(*names)
        if self._plan.keep and self.disk is not None:
            # The disk goes with its holder.
            shutil.copytree(self.disk.directory / "data", self._file("disk") / "data")

    async def _all_ended(self, *names: str) -> None:
        await asyncio.gather(*(asyncio.shield(self._running[name]) for name in names))

    async def _destroy(self) -> None:
        """Kill whatever still runs."""
        for party in self.parties.values():
            party.end(signal.SIGKILL)
        await asyncio.gather(*self._running.values(), return_exceptions=True)


def _lasthop(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lasthop", *arguments]


def _token(token: str) -> str:
    """Return the option for a token in one word: a token may begin with a hyphen."""
    return f"--token={token}"


def _free_ports(number: int) -> list[int]:
    """Return ports that nobody listens on, for a gateway that comes back to them."""
    probes = [socket.socket() for _ in range(number)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
