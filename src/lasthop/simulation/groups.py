"""Groups and queues in a fault schedule: their members, what is sent to them, and what has to be
true in the end.

They are drawn with a random generator of their own, so that the rest of a schedule does not change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random

from lasthop.clock import SECOND, Micros
from lasthop.core.groups.decider import Standing
from lasthop.core.lifecycle import State
from lasthop.device.message import Message
from lasthop.device.session_events import Decided
from lasthop.events import Event, Kind
from lasthop.message import Binding, Reliability
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.schedule import LANES, Batch, Move, PlannedMessage, Schedule
from lasthop.simulation.verdict import ArrivedMessage, Fate, RehearsalVerdict
from lasthop.wire.hop.decisions import GroupVerdict as GroupDecision
from lasthop.wire.hop.frames import Headers, Operation

GROUP, QUEUE = "group:crew", "queue:jobs"


def add_groups(schedule: Schedule) -> None:
    """Let some devices belong to a group and a queue, in a third of all schedules."""
    if schedule.seed % 3 != 1:
        return
    random = Random(schedule.seed ^ 0x6209)
    members = [name for name in schedule.devices if random.random() < 0.8]
    consumers = [name for name in schedule.devices if random.random() < 0.8]
    schedule.memberships = {
        GROUP: members or schedule.devices,
        QUEUE: consumers or schedule.devices,
    }
    schedule.patience = random.choice((3, 10, 60)) * SECOND
    schedule.prefetch = random.choice((1, 2, 16))
    number = schedule.messages
    end = schedule.batches[-1].at
    for at in sorted(random.randint(0, end) for _ in range(random.choice((2, 4, 8)))):
        source = random.choice(("publisher:p", "publisher:q", *_senders(schedule)))
        plans: list[PlannedMessage] = []
        for _ in range(random.choice((1, 1, 2, 4))):
            plans.append(_plan(random, number, source))
            number += 1
        schedule.batches.append(Batch(at=at, plans=plans))
    schedule.batches.sort(key=lambda batch: batch.at)
    if schedule.copy_at is None:
        # A backup would not know which members have left and come back.
        _draw_moves(schedule, random, end)
        _draw_crashes(schedule, random)


def _draw_moves(schedule: Schedule, random: Random, end: Micros) -> None:
    for target, names in schedule.memberships.items():
        for name in names[1:] if target == GROUP else names:
            if random.random() < 0.3:
                at = random.randint(0, end)
                away = random.randint(0, 10 * SECOND)
                schedule.moves.append(Move(at=at, device=name, target=target, joins=False))
                schedule.moves.append(Move(at=at + away, device=name, target=target, joins=True))


def _draw_crashes(schedule: Schedule, random: Random) -> None:
    """Draw later crashes, because decisions come long after acceptance."""
    for when in (schedule.crash_before, schedule.crash_after):
        for _ in range(random.choice((0, 1, 2))):
            when.add(random.randint(1, 10 * len(schedule.batches)))


def _senders(schedule: Schedule) -> list[str]:
    return [f"device:{name}" for name in schedule.devices]


def _plan(random: Random, number: int, source: str) -> PlannedMessage:
    by_publisher = source.startswith("publisher:")
    target = random.choice((GROUP, GROUP, QUEUE))
    binding = random.choice(tuple(Binding)) if target == GROUP else Binding.NONE
    ttl = random.randint(SECOND, 40 * SECOND)
    if binding is not Binding.ATOMIC and random.random() < 0.8:
        ttl = 0
    if binding is Binding.ATOMIC and random.random() < 0.5:
        ttl = 600 * SECOND
    return PlannedMessage(
        number=number,
        source=source,
        target=target,
        binding=binding,
        priority=random.choice(LANES),
        reliability=Reliability.EXACTLY_ONCE,
        ttl=ttl or None,
        delay=random.randint(0, 5 * SECOND) if by_publisher and random.random() < 0.1 else None,
        replace_key="g" if by_publisher and random.random() < 0.1 else None,
        cancel_after=random.randint(0, 4 * SECOND)
        if by_publisher and random.random() < 0.25
        else None,
        size=random.choice((20, 20, 300)),
    )


class Claims:
    """An application that claims messages it is shown, and remembers the decisions."""

    def __init__(
        self, kernel: Kernel, random: Random, say: Callable[[bytes, str | None, Headers], None]
    ) -> None:
        self._kernel = kernel
        self._random = random
        self._say = say
        self._asked: dict[int, int] = {}
        self.answers: list[tuple[int, bool]] = []
        """The key of a message, and whether the claim was granted."""
        self.shown: dict[int, Micros] = {}
        """When messages for groups were first shown, by key."""

    def see(self, message: Message) -> None:
        """Note that the user sees a message; one or more claims may follow."""
        if message.group is None:
            return
        self.shown.setdefault(message.key, self._kernel.now())
        if message.claimable:
            headers = Headers(operation=Operation.CLAIM, in_reply_to=message.key)
            for _ in range(self._random.choice((0, 1, 1, 2, 3))):
                delay = self._random.randint(0, self._random.choice((3, 30)) * SECOND)
                self._kernel.after(delay, partial(self._say, b"", None, headers))

    def queued(self, key: int, headers: Headers) -> None:
        """Note that a claim is in the outbox."""
        if headers.operation == Operation.CLAIM:
            self._asked[key] = headers.in_reply_to or 0

    def hear(self, told: Decided) -> None:
        """Note what the gateway decided about a claim."""
        verdict = told.decision.verdict
        if verdict in (GroupDecision.GRANT, GroupDecision.DENY) and told.key in self._asked:
            self.answers.append((self._asked[told.key], verdict is GroupDecision.GRANT))


@dataclass(slots=True)
class _GroupHistory:
    """What the event log has about one message for a group."""

    members: int = 0
    """How many members the group had when the message was accepted."""
    accepted: set[str] = field(default_factory=set)
    received: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    """Devices to which the message was sent, or could have been."""
    before: Micros = 0
    settled: list[tuple[str, str, Micros]] = field(default_factory=list)
    """How the message was settled, by which device, and when."""
    early: bool = False
    """Whether the message was released for all members before all had received it."""


def judge_groups(
    verdict: RehearsalVerdict,
    plans: Mapping[int, PlannedMessage],
    fates: Iterable[Fate],
    arrivals: Mapping[str, list[ArrivedMessage]],
    claims: Mapping[str, Claims],
    seen: Mapping[str, set[int]],
    events: Iterable[Event],
) -> None:
    """Check what happened to groups and queues; `seen` has the keys of all messages that came over
    each device's channels."""
    bound = [f for f in fates if plans[f.number].target in (GROUP, QUEUE)]
    by_number: dict[int, list[Fate]] = defaultdict(list)
    for fate in bound:
        by_number[fate.number].append(fate)
    histories = _histories(events, {fate.key for fate in bound})
    for number, theirs in by_number.items():
        plan = plans[number]
        history = histories[theirs[0].key]
        had = {name: [a for a in there if a.number == number] for name, there in arrivals.items()}
        if plan.target == QUEUE:
            _judge_queue(verdict, plan, theirs, had)
        elif plan.binding is Binding.ATOMIC:
            _judge_atomic(verdict, number, theirs, had, history, claims, seen)
        elif plan.binding is Binding.CLAIM:
            _judge_claim(verdict, number, theirs, history, claims)
        if plan.target == GROUP and not plan.withdrawable and plan.binding is not Binding.CLAIM:
            _judge_members(verdict, number, history)


def _histories(events: Iterable[Event], keys: set[int]) -> dict[int, _GroupHistory]:
    histories: dict[int, _GroupHistory] = defaultdict(_GroupHistory)
    for event in events:
        if event.msg not in keys:
            continue
        history = histories[event.msg]
        if event.kind == Kind.PUBLISHED:
            history.members = event.count
        elif event.kind == Kind.ACCEPTED:
            history.accepted.add(event.dev)
            history.before = event.before
        elif event.kind == Kind.RELEASED:
            history.released.add(event.dev)
        elif event.kind == Kind.RECEIVED:
            history.received.add(event.dev)
        elif event.kind == Kind.SETTLED:
            history.settled.append((event.state, event.dev, event.t))
            if event.state == Standing.RELEASED.name:
                history.early = history.received != history.accepted or event.t >= history.before
    return histories


def _judge_members(verdict: RehearsalVerdict, number: int, history: _GroupHistory) -> None:
    if len(history.accepted) != history.members:
        told = f"{number} was for {history.members} members"
        verdict.add("lost", f"{told}, and went to {sorted(history.accepted)}")


def _judge_atomic(
    verdict: RehearsalVerdict,
    number: int,
    fates: list[Fate],
    had: Mapping[str, list[ArrivedMessage]],
    history: _GroupHistory,
    claims: Mapping[str, Claims],
    seen: Mapping[str, set[int]],
) -> None:
    key = fates[0].key
    shown = {name for name, arrivals in had.items() if arrivals}
    delivered = {fate.device for fate in fates if fate.state is State.DELIVERED}
    if len(history.settled) != 1:
        verdict.add("untrue", f"atomic {number} was settled {len(history.settled)} times")
        return
    state, _, at = history.settled[0]
    if state == Standing.RELEASED.name:
        if history.early:
            verdict.add("untrue", f"atomic {number} was released too early, or too late")
        if shown != history.accepted:
            verdict.add("lost", f"atomic {number} was released, and shown to {sorted(shown)} only")
        for name in shown:
            if claims[name].shown.get(key, at) < at:
                verdict.add("untrue", f"atomic {number} was shown on {name} before its release")
    elif shown or delivered:
        verdict.add("untrue", f"atomic {number} was {state}, and shown to {sorted(shown)}")
    for fate in fates:
        if fate.device not in history.released and key in seen[fate.device]:
            verdict.add("untrue", f"{fate.device} was sent {number}, which never left")


def _judge_claim(
    verdict: RehearsalVerdict,
    number: int,
    fates: list[Fate],
    history: _GroupHistory,
    claims: Mapping[str, Claims],
) -> None:
    key = fates[0].key
    answers = {name: {a for k, a in c.answers if k == key} for name, c in claims.items()}
    granted = [name for name, told in answers.items() if True in told]
    winners = [dev for state, dev, _ in history.settled if state == Standing.CLAIMED.name]
    if len(history.settled) > 1 or len(granted) > 1:
        verdict.add("untrue", f"{number} was granted to {granted}, by the log to {winners}")
    if granted and granted != winners:
        verdict.add("untrue", f"{number} was granted to {granted}, by the log to {winners}")
    for name, told in answers.items():
        if len(told) > 1:
            verdict.add("untrue", f"{name} was told yes and no about {number}")
    for fate in fates:
        if winners and fate.state is State.PENDING:
            verdict.add("lost", f"{number} is still open for {fate.device}")


def _judge_queue(
    verdict: RehearsalVerdict,
    plan: PlannedMessage,
    fates: list[Fate],
    had: Mapping[str, list[ArrivedMessage]],
) -> None:
    arrivals = [(name, arrival) for name, there in had.items() for arrival in there]
    unmarked = [name for name, arrival in arrivals if not arrival.redelivered]
    if len(unmarked) > 1:
        verdict.add("duplicated", f"{plan.number} of the queue was shown to {unmarked}, unmarked")
    states = {fate.state for fate in fates}
    if states == {State.REASSIGNED}:
        verdict.add("lost", f"{plan.number} of the queue was passed on to no device")
    if plan.ttl is None and not plan.withdrawable and not arrivals:
        verdict.add("lost", f"{plan.number} of the queue was shown on no device")
