"""The streams of a fault schedule: who sends how much to whom, the applications at both ends, and
what must be true in the end.

They are drawn with a random generator of their own, so that the rest of a schedule does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.core.gateway import Gateway
from lasthop.core.publishing.submission import Submission
from lasthop.device.message import Message
from lasthop.device.session import DeviceSession
from lasthop.errors import Conflict, LasthopError
from lasthop.message import Target, TargetKind
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.schedule import LANES, Schedule
from lasthop.simulation.verdict import RehearsalVerdict
from lasthop.wire.hop.frames import Headers

GATEWAY_WINDOW = 700
DEVICE_WINDOW = 500
"""Windows in bytes: small, so that every stream has to wait for its reader."""

MOST = 400
"""The largest number of bytes that an application reads at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStream:
    """One stream that a device or a publisher will send."""

    name: str
    at: Micros
    sender: str
    """The name of the sending device; empty: a publisher."""
    receiver: str
    size: int
    priority: int

    @property
    def content(self) -> bytes:
        return Random(self.name).randbytes(self.size)


def draw_streams(schedule: Schedule) -> list[PlannedStream]:
    """Draw the streams of a schedule: in every third one, since they take as long as all the
    rest."""
    if schedule.seed % 3:
        return []
    random = Random(schedule.seed ^ 0x57E4)
    end = schedule.batches[-1].at
    return [
        PlannedStream(
            name=f"stream-{n}",
            at=random.randint(0, end),
            sender=random.choice(["", *schedule.devices]),
            receiver=random.choice(schedule.devices),
            size=random.choice((0, 100, 1500, 4000)),
            priority=random.choice(LANES),
        )
        for n in range(random.choice((1, 1, 2, 3)))
    ]


class _Out:
    """A stream that a device's application is sending."""

    __slots__ = ("content", "durable_key", "ended", "key", "over", "plan", "position")

    def __init__(self, plan: PlannedStream) -> None:
        self.plan = plan
        self.content = plan.content
        self.key: int | None = None
        self.durable_key: int | None = None
        self.position = 0
        self.ended = False
        self.over = False


class Flows:
    """The application of one device that writes and reads streams. Its files survive crashes."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._outs: list[_Out] = []
        self._names: dict[int, str] = {}
        self._reading: dict[int, int] = {}
        self.files: dict[str, bytearray] = {}
        self.ended: set[str] = set()
        self.problems: list[str] = []

    @property
    def busy(self) -> bool:
        """Whether the application has something to send that the gateway may not have."""
        return not all(out.over for out in self._outs)

    def send(self, plan: PlannedStream) -> None:
        """Begin to send a planned stream to its receiver."""
        self._outs.append(_Out(plan))

    def opened(self, message: Message) -> None:
        """Note that a message has opened a stream."""
        self._names[message.key] = message.title or ""
        self.files.setdefault(message.title or "", bytearray())

    def restart(self, session: DeviceSession) -> None:
        """Continue after a crash with the durable position of every stream."""
        self._reading.clear()
        kept = dict(session.pieces.outgoing.states())
        for out in self._outs:
            out.key = out.durable_key
            state = kept.get(out.key) if out.key is not None else None
            if state is not None:
                out.position, out.ended = state.position, state.size >= 0
            elif out.key is not None:
                out.over = True
            else:
                out.position, out.ended = 0, False

    def work(self, session: DeviceSession, now: Micros) -> bool:
        """Write and read a little; return whether there may be more to do soon."""
        for out in self._outs:
            if not out.over:
                self._write(out, session, now)
        return self._read(session)

    def opening(self) -> list[tuple[_Out, int]]:
        """Return the streams that the next commit opens, with their keys."""
        return [(o, o.key) for o in self._outs if o.key is not None and o.durable_key is None]

    def committed(self, opening: Iterable[tuple[_Out, int]]) -> None:
        """Note that the opening of these streams is durable."""
        for out, key in opening:
            out.durable_key = key

    def _write(self, out: _Out, session: DeviceSession, now: Micros) -> None:
        outgoing = session.pieces.outgoing
        if out.key is None:
            plan = out.plan
            headers = Headers(
                to=f"device:{plan.receiver}", title=plan.name, priority=plan.priority, stream=True
            )
            out.key = session.pieces.open_stream(now, headers)
        elif out.key not in outgoing:
            out.over = True
        elif out.position < len(out.content):
            part = out.content[out.position :][: self._random.choice((50, 300, 5000))]
            try:
                out.position += outgoing.write(out.key, part)
            except Conflict as error:
                self.problems.append(f"{out.plan.name}: {error}")
                out.over = True
        elif not out.ended:
            outgoing.end(out.key)
            out.ended = True

    def _read(self, session: DeviceSession) -> bool:
        more = False
        incoming = session.pieces.incoming
        for key in incoming.open_keys():
            name = self._names.get(key)
            if name is None:
                continue  # The application has not got the message that opens it.
            position = self._reading.get(key)
            if position is None:
                position = incoming.position(key)
            try:
                chunk = incoming.advance(key, position, MOST)
            except Conflict as error:
                self.problems.append(f"{name}: {error}")
                continue
            if chunk is None:
                continue
            more = True
            self._take(key, name, position, chunk)
        return more

    def _take(self, key: int, name: str, position: int, chunk: bytes) -> None:
        if not chunk:
            self.ended.add(name)
            return
        file = self.files[name]
        if position > len(file):
            self.problems.append(f"{name}: a hole from {len(file)} to {position}")
        file[position:] = chunk
        self._reading[key] = position + len(chunk)


class StreamPublisher:
    """A publisher that sends streams; after every crash it continues from the last confirmed
    position."""

    def __init__(self, kernel: Kernel, random: Random, gateway: GatewayNode, app: str) -> None:
        self._kernel = kernel
        self._random = random
        self._gateway = gateway
        self._app = app
        self._under_way = 0
        self.sent: dict[str, PlannedStream] = {}
        """Streams that were confirmed completely, by the name of the attempt."""
        self.given_up = False

    @property
    def busy(self) -> bool:
        return self._under_way > 0

    def send(self, plan: PlannedStream, attempt: int = 0) -> None:
        """Send a stream; if its opening was never confirmed, open it again under another name."""
        self._under_way += attempt == 0
        name = f"{plan.name}.{attempt}"
        found: list[int] = []

        def act(gateway: Gateway, now: Micros) -> None:
            target = Target(TargetKind.DEVICE, plan.receiver)
            submission = Submission(target=target, title=name, priority=plan.priority)
            found.append(gateway.streams.open(self._app, "publisher:s", submission, now).key)

        heard: list[bool] = []
        self._gateway.act(act, lambda: heard.append(True))

        def later() -> None:
            if heard:
                self._go_on(plan, name, found[0], 0)
            else:
                self.send(plan, attempt + 1)

        self._kernel.after(2 * SECOND, later)

    def _go_on(self, plan: PlannedStream, name: str, key: int, position: int) -> None:
        reached: list[int] = []
        durable: list[bool] = []
        content = plan.content

        def act(gateway: Gateway, now: Micros) -> None:
            stream = gateway.streams.get(key)
            if stream is None:
                reached.append(-1)
            elif position < len(content):
                part = content[position:][: self._random.choice((100, 1000, 5000))]
                reached.append(gateway.streams.append(stream, position, part, now))
            else:
                gateway.streams.end(stream, now, size=len(content))
                reached.append(len(content) + 1)

        try:
            self._gateway.act(act, lambda: durable.append(True))
        except LasthopError:
            reached.append(-1)  # The gateway has given the stream up.

        def later() -> None:
            if reached and (reached[0] < 0 or self.given_up):
                self._under_way -= 1
            elif durable and reached[0] > len(content):
                self.sent[name] = plan
                self._under_way -= 1
            else:
                self._go_on(plan, name, key, reached[0] if durable and reached else position)

        self._kernel.after(self._random.randint(10, 500) * MILLISECOND, later)


def judge_streams(
    verdict: RehearsalVerdict, sent: Mapping[str, PlannedStream], flows: Mapping[str, Flows]
) -> None:
    """Check that every stream that was sent to its end has arrived and ended, byte by byte,
    once."""
    for name, plan in sent.items():
        had = flows[plan.receiver]
        content = bytes(had.files.get(name, b""))
        if content != plan.content:
            about = f"{plan.receiver} has {len(content)} of {plan.size} bytes"
            same = plan.content.startswith(content)
            verdict.add("lost" if same else "misordered", f"of {name} {about}")
        elif name not in had.ended:
            verdict.add("lost", f"{plan.receiver} was not told that {name} has ended")
    for device, had in flows.items():
        for problem in had.problems:
            verdict.add("untrue", f"{device}: {problem}")
