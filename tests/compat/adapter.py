"""Where recordings meet the code of today: the one module here that knows names inside lasthop.

Scenarios, recordings and tests speak of HTTP requests, of what a device's application does, of
bytes and of files. What that means in the present code is said here, and only here has to be
followed when something inside is renamed. What is recorded stays as it is.

A `Stage` is one life of a gateway and its devices: the real core on a real SQLite store, behind its
real doors, and real device sessions on real SQLite inboxes, on a virtual clock. Writing takes no
time and links always take the same, so that everything depends on what is said, and on nothing
else.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping as AbstractMapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Protocol, TypeVar
from zlib import crc32

import msgspec

from lasthop.access.pap import PapDoor, PapSettings
from lasthop.access.pap.destinations import Destinations
from lasthop.access.rest import RestSettings, make_app
from lasthop.clock import DAY, MILLISECOND, SECOND, Micros
from lasthop.core.effects import Consult
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.lifecycle import State
from lasthop.core.limits import Limits
from lasthop.core.publishing.acceptance import own_key
from lasthop.core.pushes.notification import NotificationPatience
from lasthop.core.ranked.records import HOT, pack, unpack_hot
from lasthop.core.registry import DeviceRecord
from lasthop.core.surrogates.waiting import SurrogateTerms
from lasthop.decision.budgets import parse_limits
from lasthop.decision.preferences import Preferences
from lasthop.decision.routes import Variant
from lasthop.decision.volume.policy_choice import DEFAULT_POLICY, PolicyChoice
from lasthop.delivery.carrier import (
    Aborted,
    Carrier,
    Confirmed,
    NotReached,
    Outcome,
    Parcel,
    ReturnedContent,
    Sent as CarrierSent,
    Spent,
    Unanswered,
)
from lasthop.device import compose
from lasthop.device.compose import Draft
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.device.message import Message
from lasthop.device.requests.expectation import Expectation
from lasthop.device.session import DeviceSession
from lasthop.device.session_events import (
    Decided,
    Fetched,
    Gathered,
    Lapsed,
    LinkSpent,
    LinksWanted,
    Looked,
    MessageAccepted,
    MessageSent,
    Refused,
    RequestAnswered,
    Retracted,
    StreamStirred,
    TimedOut,
    Withdrawn,
)
from lasthop.device.terms import DeviceTerms
from lasthop.errors import Conflict, HopError
from lasthop.eventlog.exporter import Exporter
from lasthop.runtime.history import tell
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.interconnects import ArrivalListener, Broken, OrderedLink, RehearsedRequests
from lasthop.simulation.kernel import START, Kernel
from lasthop.simulation.link import LinkEnd, RehearsedLink, Weather
from lasthop.store.base import Durability, Reader, Store
from lasthop.store.commit import Commit, DeliveryRow
from lasthop.store.groups import GroupsRestored
from lasthop.store.pushes import PushesRestored
from lasthop.store.ranked import RankedRestored
from lasthop.store.sqlite import SqliteStore
from lasthop.store.sqlite.backup import restore
from lasthop.store.streams import StreamsRestored
from lasthop.store.surrogates import SurrogatesRestored
from lasthop.surrogate import Surrogate
from lasthop.surrogate.mail import Verdict
from lasthop.surrogate.surrogate import SurrogateRunner
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.frames import Close, CloseCode, Credit, Hello, Piece, Welcome
from lasthop.wire.hop.handshake import Dialing
from lasthop.wire.hop.heartbeat import ANSWERED
from lasthop.wire.hop.services import Question, Service, ServiceOperation
from lasthop.wire.pap.answers import AnswerVerdict as Heard, PapAnswer
from tests.compat.tape import SessionEvent, Tape

T = TypeVar("T")

APP = "default"
INCARNATION = 0x0123_4567_89AB_CDEF
DELAY: Micros = 17 * MILLISECOND + 3
"""What bytes take from one end to the other. Nothing else here takes so long, so that nothing else
happens at the moment at which they arrive."""

THINKING: Micros = 1_300 * MILLISECOND
"""What a surrogate takes over one input: long enough to be interrupted."""


class Steady(Random):
    """Random bits from a seed; where a driver would draw lots or a delay, always the same one."""

    def random(self) -> float:
        return 0.0

    def randint(self, a: int, b: int) -> int:
        return b


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is particular about the gateway of a scenario."""

    limits: AbstractMapping[str, Any] = field(default_factory=dict)
    surrogate: type[Surrogate] | None = None
    give_up_after: Micros = DAY
    """How long initiators are told what they do not hear."""
    shared: str = ""
    """Limits for all devices together, as people write them."""
    policies: AbstractMapping[str, AbstractMapping[str, Any]] = field(default_factory=dict)
    """Learned policies by topic."""


class PolicyBook:
    """Policies by topic; the built-in one where nothing is said."""

    def __init__(self, policies: AbstractMapping[str, AbstractMapping[str, Any]]) -> None:
        self.policies = dict(policies)

    def choose(self, app: str, device: str, topic: str, default: str = "") -> PolicyChoice:
        return PolicyChoice(**self.policies.get(topic, {}))

    def trial(self, app: str, device: str) -> None:
        return None


class Disk:
    """A store in a directory. Only the process dies: what was applied is there."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.store: SqliteStore | None = None

    def open(self) -> Store:
        self.store = SqliteStore(
            self._directory, durability=Durability.RELAXED, incarnation=INCARNATION
        )
        return self.store

    def crash(self, writing: Commit | None) -> None:
        if self.store is not None:
            self.store.close()
            self.store = None


class TapedLink(RehearsedLink):
    """A link that writes down what either end does."""

    tape: Tape
    number: int
    cutter = "gateway"
    """Whose network fails; a gateway that dies takes its links with it."""

    def write(self, end: LinkEnd, data: bytes) -> None:
        self._note(end, "bytes", data)
        super().write(end, data)

    def close(self, end: LinkEnd) -> None:
        self._note(end, "close")
        super().close(end)

    def cut(self) -> None:
        self._note(LinkEnd.DEVICE if self.cutter == "device" else LinkEnd.GATEWAY, "cut")
        super().cut()

    def _note(self, end: LinkEnd, what: str, data: bytes = b"") -> None:
        who = "device" if end is LinkEnd.DEVICE else "gateway"
        self.tape.note(SessionEvent(self._kernel.now() - START, self.number, who, what, data))


class TapedUnits(TapedLink, OrderedLink):
    """WebSocket."""


class TapedRequests(TapedLink, RehearsedRequests):
    """HTTP requests."""


DATAGRAM = Interconnect.DATAGRAM


class Other(Protocol):
    """A device that is made of something else than Python."""

    @property
    def terms(self) -> AbstractMapping[str, Any]: ...

    def memory(self) -> dict[str, Any]:
        """What its application has kept."""
        ...

    def crash(self) -> None:
        """Die; the inbox stays."""
        ...


class Stage:
    """One life of a gateway and of the devices around it."""

    def __init__(
        self,
        directory: Path,
        setting: Setting,
        *,
        now: Micros = 0,
        life: int = 1,
        names: AbstractMapping[str, str] | None = None,
        devices_say: Tape | None = None,
        gateway_says: Tape | None = None,
    ) -> None:
        """`now` counts from the beginning of all recordings. With `devices_say` the devices are
        not there, and what they said is played instead; with `gateway_says` the gateway."""
        self.kernel = Kernel(START + now)
        self.directory = directory
        self.tape = Tape()
        self.names: dict[str, str] = dict(names or {})
        """Ids of messages and streams, under the names that the scenario gave them."""
        self.answers: list[Any] = []
        """What the doors have said, in order."""
        self.devices: dict[str, Handset] = {}
        self.others: dict[str, Other] = {}
        """Devices that are made of something else than Python."""
        self.played = devices_say
        self.heard = gateway_says
        self.posts: list[bytes] = []
        """What was posted to initiators."""
        self.initiator = PapAnswer(Heard.UNREACHABLE, "nobody is there")
        """What they answer."""
        self.parcels: list[tuple[Parcel, Callable[[Outcome], None]]] = []
        """What carriers have been given and have not spoken of."""
        self.thinking = THINKING
        """What the surrogate takes over one input."""
        self._links: dict[int, TapedLink] = {}
        self._loop = asyncio.new_event_loop()
        self._tokens = 0
        self._until_crash: int | None = None
        self._surrogate = setting.surrogate
        self.book = PolicyBook(setting.policies)
        self.disk = Disk(directory / "store")
        self._backup = directory / "backup.db"
        identity = Identity(
            name="compat",
            open_house=True,
            limits=Limits(**setting.limits),
            patience=NotificationPatience(give_up_after=setting.give_up_after),
            policies=self.book,
            shared=parse_limits(setting.shared),
            surrogates={} if setting.surrogate is None else {APP: SurrogateTerms()},
            variants=frozenset(Variant),
        )
        self.node = GatewayNode(
            self.kernel,
            Steady(life),
            self.disk,
            identity,
            write_time=0,
            after_commit=self._dies,
            started=lambda store: None,
            committed=lambda commit: None,
            tell=self._tell,
            consult=self._consult,
            carriers=self._carriers,
        )
        self._rest = make_app(
            self, RestSettings(open_house=True), make_token=self._token, explain=self._explain
        )
        context = self._rest.context
        pap = PapSettings(notify_private=True)
        self._pap = PapDoor(
            self,
            pap,
            callers=context.callers,
            intake=context.intake,
            charge=context.charge,
            destinations=Destinations(hosts=(), private=True),
        )
        if gateway_says is None:
            self.node.start()
        self._play()

    # Time.

    @property
    def time(self) -> Micros:
        """Since the beginning of all recordings."""
        return self.kernel.now() - START

    def run(self, seconds: float) -> None:
        """Let time pass."""
        there: list[bool] = []
        self.kernel.after(round(seconds * SECOND), lambda: there.append(True))
        # What was planned for the same moment, and what follows from it at once, comes before.
        self.kernel.run(until=lambda: bool(there), limit=1 << 60)
        self.kernel.run(until=lambda: False, limit=0)

    def crash(self) -> None:
        """Everybody dies at once; what is on the disks stays."""
        self.tape.over = True
        if self.heard is None:
            self.node.crash()
        for device in (*self.devices.values(), *self.others.values()):
            device.crash()
        self._loop.close()
        if self._backup.exists():
            self._go_back()

    def back_up(self) -> None:
        """Copy the store as it is: the next life will know of nothing that comes later."""
        if self.disk.store is not None:
            self.disk.store.backup(self._backup)

    def _go_back(self) -> None:
        for file in (self.directory / "store").glob("store.db*"):
            file.unlink()
        restore(self._backup, self.directory / "store")
        with closing(sqlite3.connect(self.directory / "store" / "store.db")) as database:
            database.execute("UPDATE meta SET incarnation = ?", (INCARNATION + 1,))
            database.commit()

    def crash_after(self, commits: int) -> None:
        """The gateway will die, just after so many commits."""
        self._until_crash = commits

    def _dies(self, n: int) -> bool:
        if self._until_crash is None:
            return False
        self._until_crash -= 1
        if self._until_crash:
            return False
        self._until_crash = None
        return True

    # The desk behind the doors.

    def now(self) -> Micros:
        return self.kernel.now()

    async def call(self, act: Callable[[Gateway, Micros], T]) -> T:
        results: list[T] = []
        heard: list[bool] = []
        there = self.node.act(
            lambda gateway, now: results.append(act(gateway, now)), lambda: heard.append(True)
        )
        # Writing takes no time, but has its turn among what happens now.
        self.kernel.run(until=lambda: bool(heard), limit=0)
        assert there
        return results[0]

    async def durable(self) -> None:
        await self.call(lambda *_: None)

    def look(self, ask: Callable[[Gateway], T]) -> T:
        assert self.node.gateway is not None
        return ask(self.node.gateway)

    async def read(self, ask: Callable[[Reader], T]) -> T:
        assert self.node.store is not None
        return ask(self.node.store)

    async def wait(
        self, key: int, ready: Callable[[list[DeliveryRow]], bool], seconds: float
    ) -> list[DeliveryRow]:
        return await self.read(lambda reader: reader.deliveries(key))

    async def watch(self, key: int, ask: Callable[[Gateway], T | None], seconds: float) -> T | None:
        return self.look(ask)

    def _token(self) -> str:
        self._tokens += 1
        return f"token-{self._tokens}"

    async def _explain(self, message: int, device: int) -> object:
        assert self.node.store is not None
        return tell(self.node.store, self.directory, message=message, device=device)

    # Those at the doors.

    def http(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        raw: bytes | None = None,
        headers: AbstractMapping[str, str] | None = None,
    ) -> Any:
        """A request at the REST door; what it answers."""
        if self.heard is not None:
            return {}
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        status, answer = self._knock(self._rest, method, path, content, headers or {})
        found = json.loads(answer) if answer[:1] in (b"{", b"[") else _short(answer)
        self.answers.append([method, path, status, found])
        return found

    def publish(self, name: str, to: str, body: str = "", *, key: str = "", **fields: Any) -> None:
        """A message, that is known by a name from now on."""
        said = {"to": to, "body": body or name, **fields}
        headers = {"idempotency-key": key} if key else {}
        answer = self.http("POST", "/v1/messages", said, headers=headers)
        if "id" in answer:
            self.names[name] = answer["id"]

    def message(self, method: str, name: str, rest: str = "", body: object = None) -> Any:
        """Something about a message that has a name."""
        return self.http(method, f"/v1/messages/{self.names.get(name, '')}{rest}", body)

    def stream(self, method: str, name: str, rest: str = "", *, raw: bytes | None = None) -> Any:
        """Something about a stream that has a name."""
        return self.http(method, f"/v1/streams/{self.names.get(name, '')}{rest}", raw=raw)

    def open_stream(self, name: str, to: str, **fields: Any) -> None:
        """A stream, that is known by its title."""
        answer = self.http("POST", "/v1/streams", {"to": to, "title": name, **fields})
        if "id" in answer:
            self.names[name] = answer["id"]

    def pap(self, content_type: str, body: bytes) -> None:
        """A request at the PAP door."""
        if self.heard is None:
            headers = {"content-type": content_type}
            status, answer = self._knock(self._pap, "POST", "/pap", body, headers)
            self.answers.append(["POST", "/pap", status, answer.decode()])

    def _knock(
        self, door: Any, method: str, path: str, content: bytes, headers: AbstractMapping[str, str]
    ) -> tuple[int, bytes]:
        path, _, query = path.partition("?")
        lines = {"host": "localhost", "content-length": str(len(content)), **headers}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": query.encode(),
            "scheme": "http",
            "server": ("localhost", 80),
            "client": ("127.0.0.1", 4321),
            "headers": [(name.encode(), value.encode()) for name, value in lines.items()],
        }
        sent: list[dict[str, Any]] = []

        parts = [{"type": "http.request", "body": content, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if not parts:
                await asyncio.Event().wait()  # The caller stays as long as it takes.
            return parts.pop()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        self._loop.run_until_complete(door(scope, receive, send))
        body = b"".join(message.get("body", b"") for message in sent)
        return int(sent[0]["status"]), body

    def _tell(self, content_type: str, body: bytes, answered: Callable[[PapAnswer], None]) -> None:
        self.posts.append(content_type.encode() + b"\n\n" + body)
        self.kernel.after(DELAY, lambda: answered(self.initiator))

    def initiators_answer(self, word: str) -> None:
        """From now on initiators hear, refuse, or cannot be reached."""
        self.initiator = PapAnswer(Heard[word], word.lower())

    def change_policy(self, topic: str, **choice: Any) -> None:
        """The pipeline has learned something."""
        self.book.policies[topic] = choice
        if self.heard is None:
            self.node.act(
                lambda gateway, now: _void(gateway.ranked.policies_changed(now)), lambda: None
            )

    # Carriers.

    def _carriers(self, boot: int) -> AbstractMapping[str, Carrier]:
        return dict.fromkeys(Variant, self)

    def carry(self, parcel: Parcel, report: Callable[[Outcome], None]) -> None:
        self.parcels.append((parcel, report))

    def withdraw(self, number: int) -> bool:
        """Every parcel of a recorded past had left."""
        return False

    def report(self, body: str, word: str) -> None:
        """A carrier says what became of a parcel."""
        if self.heard is None:
            at = next(
                n for n, (parcel, _) in enumerate(self.parcels) if parcel.body == body.encode()
            )
            self.parcels.pop(at)[1](_OUTCOMES[word])

    def report_all(self) -> None:
        """Carriers say that everything has gone well."""
        for parcel, _ in list(self.parcels):
            self.report(parcel.body.decode(), "confirmed" if parcel.confirmed else "sent")

    # Surrogates.

    def _consult(self, gateway: Gateway, consult: Consult, alive: Callable[[], bool]) -> None:
        self._think(gateway, consult, 0, alive)

    def _think(
        self, gateway: Gateway, consult: Consult, at: int, alive: Callable[[], bool]
    ) -> None:
        def speak() -> None:
            if not alive():
                return
            assert self._surrogate is not None
            mail = consult.mails[at]
            post = gateway.surrogates.post(consult.app)
            assert post is not None
            live = SurrogateRunner(self._surrogate, post.state, limit=post.terms.state)
            verdict = msgspec.msgpack.decode(
                msgspec.msgpack.encode(live.handle(mail)), type=Verdict
            )
            now = self.kernel.now()
            refused = gateway.surrogates.consulted(consult.app, mail.number, verdict, now)
            if refused is None and at + 1 < len(consult.mails):
                self._think(gateway, consult, at + 1, alive)
            self.node.turn()

        self.kernel.after(self.thinking, speak)

    def surrogate_state(self) -> dict[str, Any]:
        """What the surrogate remembers."""
        post = self.look(lambda gateway: gateway.surrogates.post(APP))
        assert post is not None
        return {name: msgspec.msgpack.decode(value) for name, value in sorted(post.state.items())}

    # Devices, and links to them.

    def device(self, name: str, **terms: Any) -> Handset:
        """A device that is there from now on; with its inbox, if it has one."""
        self.devices[name] = Handset(self, name, terms)
        return self.devices[name]

    def dismiss(self, name: str) -> None:
        """A device is not there any more; its inbox goes with it."""
        device = self.devices.pop(name)
        device.crash()
        (self.directory / f"{name}.inbox").unlink(missing_ok=True)

    def connect(
        self, kind: Interconnect, rate: int | None, arrived: ArrivalListener, broken: Broken
    ) -> TapedLink:
        """A new link to the gateway."""
        # Nobody notices the end of a link in the moment in which the other end brings it about.
        weather = Weather(delay=DELAY, jitter=0, silent=1, rate=rate)
        random = Steady(0)
        link: TapedLink
        if kind is Interconnect.HELD:
            link = TapedRequests(
                self.kernel, random, weather, every=None, arrived=arrived, broken=broken
            )
        else:
            make = TapedLink if kind is Interconnect.STREAM else TapedUnits
            link = make(
                self.kernel,
                random,
                weather,
                stream=kind is Interconnect.STREAM,
                arrived=arrived,
                broken=broken,
            )
        link.number = len(self._links) + 1
        link.tape = self.tape
        self._links[link.number] = link
        dialled = f"{kind.value} {rate or 0}".encode()
        self.tape.note(SessionEvent(self.time, link.number, "device", "dial", dialled))
        if self.heard is None:
            link.channel = self.node.dial(link, kind)
        return link

    def link_for(
        self,
        kind: Interconnect,
        arrived: Callable[[bytes], None],
        broken: Callable[[], None],
        *,
        rate: int | None = None,
    ) -> TapedLink:
        """A new link to the gateway for a device that hears of it in this way."""
        link: TapedLink

        def arrived_at(end: LinkEnd, data: bytes, number: int | None = None) -> None:
            if end is LinkEnd.GATEWAY:
                self.at_gateway(link, data, number)
            else:
                arrived(data)

        def broken_at(end: LinkEnd) -> None:
            if end is LinkEnd.GATEWAY:
                self.broken_at_gateway(link)
            else:
                broken()

        link = self.connect(kind, rate, arrived_at, broken_at)
        return link

    def at_gateway(self, link: TapedLink, data: bytes, number: int | None) -> None:
        """Bytes of a device have arrived."""
        if self.heard is None:
            self.node.arrived(link.channel, data, number)

    def broken_at_gateway(self, link: TapedLink) -> None:
        if self.heard is None:
            self.node.broken(link.channel)

    def _play(self) -> None:
        """Plan everything that somebody said who is not here."""
        if self.played is not None:
            self._plan(self.played.by("device"))
        if self.heard is not None:
            self._plan(self.heard.by("gateway"))

    def _plan(self, session_events: Iterable[SessionEvent]) -> None:
        for said in session_events:
            # Behind all that arrives in the same moment: it may have been an answer to that.
            then = partial(self.kernel.after, 0, partial(self._say_again, said))
            self.kernel.at(START + said.t, then)

    def _say_again(self, said: SessionEvent) -> None:
        if said.what == "dial":
            self._dial_again(said)
            return
        link = self._links.get(said.wire)
        if link is None:
            self.tape.note(SessionEvent(self.time, said.wire, "nobody", "dialled this"))
            return
        end = LinkEnd.DEVICE if said.who == "device" else LinkEnd.GATEWAY
        if said.what == "bytes":
            link.write(end, said.data)
        elif said.what == "close":
            link.close(end)
        else:
            self.cut(link, said.who)

    def _dial_again(self, said: SessionEvent) -> None:
        kind, rate = said.data.decode().split()
        self.link_for(Interconnect(kind), lambda data: None, lambda: None, rate=int(rate) or None)

    def cut(self, link: TapedLink, who: str) -> None:
        """The network between the two ends is gone."""
        link.cutter = who
        link.cut()

    # What can be asked.

    def ask(self, path: str) -> Any:
        """What the REST door tells, without a trace in the recorded answers."""
        status, answer = self._knock(self._rest, "GET", path, b"", {})
        return json.loads(answer) if status == 200 else f"{status}"

    def stories(self) -> dict[str, list[str]]:
        """Of every delivery that the store has: its state, and every step with its reason."""
        store = self.node.store
        assert store is not None
        told = {}
        for row in store.all_deliveries():
            message = store.messages([row.message])[row.message]
            device = self.look(partial(_device_name, number=row.device))
            steps = tell(store, self.directory, message=row.message, device=row.device)
            state = [f"{State(row.state).name} epoch={row.epoch} seq={row.seq} x{row.attempts}"]
            title = f"{message.id} {message.target} -> {device}"
            told[title] = state + [str(step) for step in steps]
        return told

    def export(self, log: Path) -> None:
        """Write the event log as files."""
        store = self.disk.store
        assert store is not None
        Exporter(log, store, confirm=store.exported).finish(self.kernel.now())


def _device_name(gateway: Gateway, number: int) -> str:
    device = gateway.registry.numbered(number)
    return "(removed)" if device is None else device.name


def _void(_: object) -> None:
    """Throw an answer away."""


_OUTCOMES: dict[str, Outcome] = {
    "sent": CarrierSent(),
    "paid": CarrierSent(spent=Spent(120, 1)),
    "confirmed": Confirmed(),
    "answered": Confirmed(ReturnedContent("text/plain", b"the client's answer")),
    "aborted": Aborted(0xEA),
    "unanswered": Unanswered("nothing came back"),
    "unreached": NotReached("it is out of reach"),
}


class DeviceEnd:
    """The device's end of a link."""

    def __init__(self, link: TapedLink) -> None:
        self._link = link

    def write(self, data: bytes) -> None:
        self._link.write(LinkEnd.DEVICE, data)

    def close(self) -> None:
        self._link.close(LinkEnd.DEVICE)


class _Wire:
    """One channel, seen from the device."""

    __slots__ = ("label", "link", "number", "phase", "probe", "watched")

    def __init__(self, number: int, label: str, link: TapedLink, phase: Dialing) -> None:
        self.number = number
        self.label = label
        self.link = link
        self.phase: Dialing | Open = phase
        self.probe = False
        self.watched: Micros | None = None


class Handset:
    """One device, and an application that writes down what it has had.

    Everything that it is told to do is left out when the devices' side of a recording is played.
    """

    def __init__(self, stage: Stage, name: str, terms: AbstractMapping[str, Any]) -> None:
        self.name = name
        self.terms = terms
        self.had: list[list[Any]] = []
        """What the application has dealt with, in order."""
        self.heard: list[list[Any]] = []
        """What it was told of its own messages, and of others."""
        self.files: dict[str, bytes] = {}
        """What it has had of streams, by title."""
        self.titles: dict[int, str] = {}
        self.puts_off = "later"
        """A message that begins like this, or whose title does, is not dealt with before the
        application takes its time; nor is what comes behind it."""
        self.has_time = False
        self.reads_streams = True
        self.answers = True
        self._stage = stage
        self._kernel = stage.kernel
        self._here = stage.played is None
        self._wires: list[_Wire] = []
        self._todo: list[Message] = []
        self._pulling: dict[int, Message] = {}
        self._claimable: dict[bytes, Message] = {}
        self._reading: dict[int, int] = {}
        self._contents: dict[int, bytes] = {}
        self._drained = True
        self._woken: Micros | None = None
        self._turning = False
        if not self._here:
            return
        chosen = {"window": Credit(*terms["window"])} if "window" in terms else {}
        self._terms = DeviceTerms(app=APP, name=name, **{**terms, **chosen})
        stage.directory.mkdir(parents=True, exist_ok=True)
        self._inbox = SqliteInbox(stage.directory / f"{name}.inbox", power_safe=False)
        self._session = DeviceSession(self._terms, self._inbox.load())
        for key, state in self._session.pieces.outgoing.states():
            self._contents[key] = content_of(state.title or "")
        self.turn()

    def remember(self, memory: AbstractMapping[str, Any]) -> None:
        """What the application itself has kept of its earlier life."""
        self.had = [list(line) for line in memory["had"]]
        self.heard = [list(line) for line in memory["heard"]]
        self.files = {title: bytes.fromhex(data) for title, data in memory["files"].items()}
        self.titles = {int(key): title for key, title in memory["titles"].items()}

    def memory(self) -> dict[str, Any]:
        """The same, to be kept."""
        return {
            "terms": self.terms,
            "had": self.had,
            "heard": self.heard,
            "files": {title: bytes(data).hex() for title, data in self.files.items()},
            "titles": {str(key): title for key, title in self.titles.items()},
        }

    def crash(self) -> None:
        """Die; the inbox stays."""
        if not self._here:
            return
        self._here = False
        for wire in self._wires:
            self._stage.cut(wire.link, "device")
        self._wires = []
        self._inbox.close()

    # Links.

    def dial(
        self,
        label: str = "wifi",
        *,
        kind: str = "stream",
        rate: int | None = None,
        network: str | None = None,
        heartbeat: int | None = None,
    ) -> None:
        """Open a channel, or one more."""
        if not self._here:
            return
        session = self._session
        if any(isinstance(wire.phase, Open) for wire in self._wires):
            hello = session.joining(link=label, network=network)
            assert hello is not None
        else:
            hello = session.hello(link=label, network=network)
        self._open(msgspec.structs.replace(hello, heartbeat=heartbeat), Interconnect(kind), rate)

    def probe(self, network: str, heartbeat: int) -> None:
        """Open a channel only to see how long it lives."""
        if not self._here:
            return
        hello = Hello(
            app=APP,
            device=self.name,
            link="wifi",
            network=network,
            heartbeat=heartbeat,
            probe=True,
        )
        self._open(hello, Interconnect.STREAM, None).probe = True

    def end_probe(self) -> None:
        """It has lived long enough."""
        for wire in [wire for wire in self._wires if wire.probe]:
            assert isinstance(wire.phase, Open)
            wire.phase.close(Close(CloseCode.BYE, 0, ANSWERED), self._kernel.now())
        self._flush()

    def lose(self, label: str | None = None) -> None:
        """One link breaks, or all."""
        for wire in list(self._wires):
            if label in (None, wire.label):
                self._stage.cut(wire.link, "device")

    def hang_up(self) -> None:
        """Say goodbye on all links."""
        for wire in list(self._wires):
            close = Close(CloseCode.BYE, 0, "good night")
            if isinstance(wire.phase, Open):
                wire.phase.close(close, self._kernel.now())
        self._flush()

    def _open(self, hello: Hello, kind: Interconnect, rate: int | None) -> _Wire:
        wire: _Wire

        def arrived(end: LinkEnd, data: bytes, number: int | None = None) -> None:
            if end is LinkEnd.GATEWAY:
                self._stage.at_gateway(wire.link, data, number)
            elif wire in self._wires:
                self._hear(wire, data, number)
                self.turn()

        def broken(end: LinkEnd) -> None:
            if end is LinkEnd.GATEWAY:
                self._stage.broken_at_gateway(wire.link)
            elif wire in self._wires:
                self._hang_up(wire)

        link = self._stage.connect(kind, rate, arrived, broken)
        phase = Dialing(hello, mapping=kind.mapping, now=self._kernel.now())
        wire = _Wire(link.number, hello.link or "", link, phase)
        self._wires.append(wire)
        self._flush()
        return wire

    def _hear(self, wire: _Wire, data: bytes, number: int | None) -> None:
        now = self._kernel.now()
        phase = wire.phase
        try:
            if isinstance(phase, Dialing):
                opened = phase.receive(data, now)
                if opened is None:
                    return
                wire.phase = opened.connection
                if wire.probe:
                    return
                if not self._welcomed(wire, phase.hello, opened.welcome):
                    self._hang_up(wire)
                    return
                self._session.received(opened.frames, now)
            elif number is None:
                self._session.received(phase.receive(data, now), now)
            else:
                self._session.received(phase.receive_unit(data, number, now), now)
        except HopError as error:
            assert isinstance(wire.phase, Open)
            wire.phase.close(Close(CloseCode(error.hop_code), 0, str(error)), now)

    def _welcomed(self, wire: _Wire, hello: Hello, welcome: Welcome) -> bool:
        session, now = self._session, self._kernel.now()
        if hello.join:
            useful = session.joined(hello, welcome)
        else:
            reliable = not isinstance(wire.link, TapedRequests)
            useful = session.welcomed(hello, welcome, now, reliable=reliable)
        if useful:
            session.link_up(wire.number, wire.label)
        return useful

    def _hang_up(self, wire: _Wire) -> None:
        wire.link.close(LinkEnd.DEVICE)
        self._wires.remove(wire)
        if wire.probe:
            return
        if any(isinstance(other.phase, Open) and not other.probe for other in self._wires):
            self._session.rerouted(wire.number)
        else:
            self._session.lost()
        self.turn()

    # What the application does.

    def say(self, draft: Draft) -> None:
        """Hand something to the session."""
        if self._here:
            draft.queue(self._session, self._kernel.now())
            self.turn()

    def send(self, target: str, body: str | bytes, **options: Any) -> None:
        self.say(compose.message(target, body, **options))

    def ask(
        self, target: str, body: str, within: float, *, gather: bool = False, callback: str = ""
    ) -> None:
        """Send a request."""
        expects = Expectation(callback=callback, gather=gather)
        within_micros = round(within * SECOND)
        self.say(compose.message(target, body, reply_within=within_micros, expects=expects))

    def subscribe(self, topic: str, **wishes: Any) -> None:
        self.say(compose.subscription(topic, on=True, **wishes))

    def unsubscribe(self, topic: str) -> None:
        self.say(compose.subscription(topic, on=False))

    def join(self, target: str) -> None:
        self.say(compose.membership(target, on=True))

    def leave(self, target: str) -> None:
        self.say(compose.membership(target, on=False))

    def claim(self, body: str) -> None:
        """Claim a message of a group that was shown."""
        if self._here:
            self.say(compose.claim(self._claimable[body.encode()]))

    def report_context(self, **context: object) -> None:
        self.say(compose.context(context))

    def report_read(self, topic: str, count: int) -> None:
        self.say(compose.read(topic=topic, count=count))

    def offer(self, name: str, *operations: str) -> None:
        """Do something for others."""
        service = Service(name, operations=tuple(ServiceOperation(one) for one in operations))
        self.say(compose.offer(service))

    def withdraw(self, name: str) -> None:
        """Do it no longer."""
        self.say(compose.withdrawal(name))

    def find(self, name: str, within: float) -> None:
        """Ask which services there are."""
        self.say(compose.question(Question(name), round(within * SECOND)))

    def prefer(self, wishes: AbstractMapping[str, Any]) -> None:
        """Which links to use, for both directions."""
        if not self._here:
            return
        preferences = msgspec.convert(wishes, Preferences)
        self._session.preferences.prefer(preferences)
        self.say(compose.preferences(preferences))

    def look(self, topic: str, wanted: int | None = None) -> None:
        """Ask for the best of a topic, or take what is here when there is no contact."""
        if not self._here:
            return
        now = self._kernel.now()
        if any(isinstance(wire.phase, Open) for wire in self._wires):
            self._session.ranked.look(topic, wanted, now)
        else:
            for message in self._session.ranked.read(topic, wanted, now):
                self._finish(message)
        self.turn()

    def open_stream(self, target: str, title: str) -> None:
        """Send a stream, whose content follows from its title."""
        if self._here:
            draft = compose.stream(target, title=title)
            key = self._session.pieces.open_stream(self._kernel.now(), draft.headers)
            self._contents[key] = content_of(title)
            self.turn()

    def take_time(self) -> None:
        """Deal with everything that was put off, from now on."""
        self.has_time = True
        self.turn()

    # What the application is given.

    def _attend(self) -> bool:
        """Deal with messages one after the other, up to one that is put off; whether there were
        any."""
        before = len(self._todo)
        while self._todo and not self._put_off(self._todo[0]):
            self._deal_with(self._todo.pop(0))
        return len(self._todo) < before

    def _put_off(self, message: Message) -> bool:
        said = (message.title or "", message.body[:100].decode(errors="replace"))
        return not self.has_time and any(text.startswith(self.puts_off) for text in said)

    def _deal_with(self, message: Message) -> None:
        now = self._kernel.now()
        if message.deadline is not None and message.deadline <= now:
            self._session.lapsed(message)
            return
        if message.claimable:
            self._claimable[message.body] = message
        if message.opens_stream:
            self.titles[message.key] = message.title or ""
            self.files.setdefault(message.title or "", b"")
        if message.pull_size is None:
            self._finish(message)
            return
        body = self._session.pieces.pull(message.key, now)
        if body is None:
            self._pulling[message.key] = message
        else:
            self._finish(message, body)

    def _finish(self, message: Message, pulled: bytes | None = None) -> None:
        body = message.body if pulled is None else pulled
        about = message.topic or message.source or message.queue or message.group or ""
        flags = "redelivered" if message.redelivered else ""
        if message.timed_out:
            flags = "timed out"
        self.had.append([message.id, about, _short(body), flags])
        now, until = self._kernel.now(), message.reply_before
        if until is not None and now < until and self.answers and message.request is None:
            compose.reply(message, b"re: " + body, now).queue(self._session, now)
        self._session.finished(message)

    def _hear_of(self, session_event: object) -> None:
        match session_event:
            case MessageSent() | MessageAccepted() | StreamStirred():
                return
            case Looked(key, messages):
                self.heard.append(["looked", len(messages)])
                for message in messages:
                    self._finish(message)
            case Fetched(key, body, reason):
                pulled = self._pulling.pop(key, None)
                if pulled is not None and body is not None:
                    self._finish(pulled, body)
                else:
                    self.heard.append(["not fetched", reason])
            case RequestAnswered(key, message):
                self.heard.append(["answered", f"{key:016x}", _short(message.body)])
            case TimedOut(key):
                self.heard.append(["timed out", f"{key:016x}"])
            case Gathered(_, replies, missing, complete):
                bodies = {name: _short(message.body) for name, message in replies.items()}
                self.heard.append(["gathered", bodies, list(missing or ()), complete])
            case Refused(_, refusal):
                self.heard.append(["refused", refusal.code])
            case Decided(key, decision):
                said = [f"{key:016x}", int(decision.verdict), decision.by]
                self.heard.append(["decided", *said])
            case Retracted(key, had):
                self.heard.append(["retracted", f"{key:016x}", had])
            case Withdrawn(topic):
                self.heard.append(["withdrawn", topic])
            case Lapsed(message):
                self.heard.append(["lapsed", message.id])
            case LinksWanted(links):
                self.heard.append(["links wanted", list(links)])
            case LinkSpent(_, link, _):
                self.heard.append(["link spent", link])
            case _:
                raise AssertionError(session_event)

    def _work_on_streams(self) -> bool:
        """Write and read as much as goes; whether that was anything."""
        incoming, outgoing = self._session.pieces.incoming, self._session.pieces.outgoing
        worked = False
        for key, state in outgoing.states():
            content = self._contents[key]
            if state.failed or state.size >= 0:
                continue
            if state.position < len(content):
                worked = outgoing.write(key, content[state.position :]) > 0 or worked
            else:
                outgoing.end(key)
                worked = True
        for key in incoming.open_keys() if self.reads_streams else ():
            title = self.titles.get(key)
            if title is None:
                continue  # Its message has not been handed over.
            position = self._reading.get(key)
            if position is None:
                position = self._reading[key] = incoming.position(key)
            try:
                chunk = incoming.advance(key, position, 1 << 16)
            except Conflict as error:
                self.heard.append(["stream given up", title, str(error)])
                continue
            if chunk is not None:
                worked = True
                if chunk:
                    self.files[title] = self.files[title][:position] + chunk
                    self._reading[key] = position + len(chunk)
                else:
                    self.heard.append(["stream ended", title, _short(self.files.pop(title))])
        return worked

    # The driver.

    def turn(self) -> None:
        """Draw the consequences of what happened, to the end."""
        if not self._here or self._turning:
            return
        self._turning = True
        while self._step():
            pass
        self._turning = False
        due = self._session.next_expiry()
        if due is not None and due != self._woken:
            self._woken = due
            self._kernel.at(max(due, self._kernel.now() + 1), self.turn)

    def _step(self) -> bool:
        session, now = self._session, self._kernel.now()
        session.expire(now)
        ready = session.ready(now)
        worked = self._work_on_streams()
        session.decide(now)
        change = session.change()
        if change is not None:
            self._inbox.apply(change)
            session.committed(change.n)
        self._todo += ready
        attended = self._attend()
        session_events = session.session_events()
        for session_event in session_events:
            self._hear_of(session_event)
        return self._flush() or bool(attended or worked or change is not None or session_events)

    def _flush(self) -> bool:
        """Say what may be said now; whether that was anything."""
        if not self._here:
            return False
        session, now = self._session, self._kernel.now()
        open_wires = [w for w in self._wires if isinstance(w.phase, Open) and not w.probe]
        said = False
        fed: _Wire | None = None
        if open_wires:
            frames = session.frames(piece=self._drained)
            speaking, *others = reversed(open_wires)
            assert isinstance(speaking.phase, Open)
            if frames:
                said = True
                speaking.phase.send(frames, now)
                if isinstance(frames[-1], Piece) and frames[-1].body:
                    fed = speaking
            for other in others:
                assert isinstance(other.phase, Open)
                other.phase.sent_elsewhere(frames)
            routed = session.routed(piece=self._drained and fed is None)
            for wire in open_wires:
                frames = routed.get(wire.number, [])
                assert isinstance(wire.phase, Open)
                if frames:
                    said = True
                    wire.phase.send(frames, now)
                    if isinstance(frames[-1], Piece) and frames[-1].body:
                        fed = wire
        for wire in list(self._wires):
            if wire not in self._wires:
                continue  # The end of another one had consequences.
            for data in wire.phase.data_to_send():
                wire.link.write(LinkEnd.DEVICE, data)
            if fed is wire:
                self._drained = False
                self._kernel.at(wire.link.drained_at(LinkEnd.DEVICE), self._piece_left)
            if wire.phase.closed is not None:
                self._hang_up(wire)
                continue
            due = wire.phase.next_timeout()
            if due is not None and due != wire.watched:
                wire.watched = due
                self._kernel.at(due, partial(self._timeout, wire))
        return said

    def _piece_left(self) -> None:
        self._drained = True
        self.turn()

    def _timeout(self, wire: _Wire) -> None:
        wire.watched = None
        if wire in self._wires:
            wire.phase.timeout(self._kernel.now())
            self._flush()


def content_of(title: str) -> bytes:
    """The content of a stream or body by its title, which ends in its size: `film/3000`. What is
    long repeats itself, so that recordings stay small."""
    size = int(title.rpartition("/")[2])
    return (Random(title).randbytes(5000) * (size // 5000 + 1))[:size]


def text_of(title: str) -> str:
    """The same as text, for bodies."""
    return content_of(title).hex()


def _short(body: bytes) -> str:
    """A body to be read by people; of a large one, its size and checksum."""
    if len(body) > 100 or not body.isascii():
        return f"{len(body)} bytes {crc32(body):08x}"
    return body.decode()


def fresh_files(directory: Path) -> None:
    """A store and an inbox with nothing in them."""
    SqliteStore(directory, durability=Durability.RELAXED).close()
    SqliteInbox(directory / "fresh.inbox", power_safe=False).close()


_FEATURES: dict[str, type[Any]] = {
    "ranked": RankedRestored,
    "surrogates": SurrogatesRestored,
    "bonds": GroupsRestored,
    "streams": StreamsRestored,
}


def restored(directory: Path) -> dict[str, Any]:
    """All that a store tells a gateway which starts, as it is kept there."""
    store = SqliteStore(directory, durability=Durability.RELAXED)
    try:
        found = store.open()
        names = [name for name in found.__struct_fields__ if name not in ("boot", "kept")]
        plain = {name: _plain(getattr(found, name)) for name in names}
        plain |= _plain(found.of(PushesRestored))
        plain |= {name: _plain(found.of(kind)) for name, kind in _FEATURES.items()}
        groups = plain["bonds"]
        plain["bonds"] = {"circles": groups.pop("records"), "bonds": groups.pop("group_messages")}
        plain["bonds"] |= groups
        # What an older store allowed its devices is written down when it is opened.
        plain["memories"] = [m for m in plain["memories"] if m["name"] != "rule:*/upgraded"]
        # When a token was last used is noted since then.
        for row in plain["devices"]:
            record = msgspec.msgpack.decode(bytes.fromhex(row["record"]), type=DeviceRecord)
            record.token_used = 0
            row["record"] = msgspec.msgpack.encode(record).hex()
        counts = _plain(store.counts())
        return {**plain, "counts": counts | counts.pop("rows")}
    finally:
        store.close()


def as_written_today(rows: dict[str, Any], version: str) -> dict[str, Any]:
    """What a store of this version tells, in the form in which the same life is written today."""
    if version == "v1":
        for row in rows["keys"]:
            row["key"] = own_key("publisher:anonymous", row["key"])
        for feed in rows["ranked"]["feeds"]:
            if feed["part"] == HOT:
                hot = unpack_hot(bytes.fromhex(feed["record"]))
                hot.default = DEFAULT_POLICY
                feed["record"] = pack(hot).hex()
    return rows


_REWORDED = {
    # What was measured of a network is still known when the device comes back there.
    "wifi has the lowest cost, 1.380": "wifi has the lowest cost, 0.882",
    "too late when it was to be used": "dropped by the device as too late",
    "the numbering starts anew": "a new epoch began",
}
"""Reasons that are worded differently since a recording was made."""


def in_todays_words(ended: dict[str, Any]) -> dict[str, Any]:
    """What was recorded of deliveries, with the reasons as they are written today."""
    text = json.dumps(ended)
    for then, today in _REWORDED.items():
        text = text.replace(then, today)
    found: dict[str, Any] = json.loads(text)
    return found


def held(path: Path) -> dict[str, Any]:
    """All that an inbox tells a device which starts, as it is kept there."""
    inbox = SqliteInbox(path, power_safe=False)
    try:
        found: dict[str, Any] = _plain(inbox.load())
        return found
    finally:
        inbox.close()


def _plain(value: Any) -> Any:
    """As JSON has it. Structures become dictionaries, so that a new field is seen as one."""
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | float | None | bool):
        return value
    if isinstance(value, Iterable):
        return [_plain(one) for one in value]
    raise TypeError(type(value))
