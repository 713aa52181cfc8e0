"""The verdict on a rehearsal: nothing lost, nothing twice, nothing out of order, nothing untrue.

The verdict compares three things that must agree: what publishers were told, what the applications
on devices were given, and what the store says about every delivery.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from lasthop.core.lifecycle import State
from lasthop.message import Reliability
from lasthop.simulation.ranked import RANKED, THRESHOLD
from lasthop.simulation.schedule import LOOSE, PlannedMessage

RANKED_TARGET = f"topic:{RANKED}"


@dataclass(frozen=True, slots=True)
class ArrivedMessage:
    """One message as an application was given it."""

    number: int
    key: int
    redelivered: int


@dataclass(frozen=True, slots=True)
class Fate:
    """The final state of one delivery, according to the store."""

    number: int
    device: str
    key: int
    state: State


@dataclass(slots=True)
class RehearsalVerdict:
    """The count of every kind of broken promise, with a line about each."""

    lost: int = 0
    duplicated: int = 0
    misordered: int = 0
    untrue: int = 0
    """States in the store, or answers to a publisher, that do not say what happened."""
    lines: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not (self.lost or self.duplicated or self.misordered or self.untrue)

    def add(self, what: str, line: str) -> None:
        """Count one broken promise of the kind `what`, and keep the line about it."""
        setattr(self, what, getattr(self, what) + 1)
        self.lines.append(f"{what}: {line}")


NEVER_SHOWN = {
    State.EXPIRED,
    State.CANCELLED,
    State.REPLACED,
    State.UNDELIVERABLE,
    State.SUPPRESSED,
    State.ABORTED,
}


def judge(
    plans: dict[int, PlannedMessage],
    accepted: set[int],
    fates: list[Fate],
    arrivals: dict[str, list[ArrivedMessage]],
    *,
    plain: Collection[str] = (),
    ranks: Mapping[int, float] | None = None,
) -> RehearsalVerdict:
    """Judge one rehearsal. `accepted` are the numbers of messages whose senders were told so; on
    `plain` devices a crash during a call may show a message again, marked as redelivered."""
    verdict = RehearsalVerdict()
    ranks = ranks or {}
    fate_of = {(fate.device, fate.number): fate for fate in fates}
    for (device, number), times in Counter((f.device, f.number) for f in fates).items():
        if times > 1 and plans[number].reliability is not Reliability.BEST_EFFORT:
            verdict.add("duplicated", f"message {number} was accepted {times} times for {device}")
    told = {fate.number for fate in fates}
    for number in sorted(accepted - told):
        if not plans[number].may_reach_nobody:
            verdict.add("lost", f"message {number} was accepted and is not in the store")
    for fate in fates:
        had = [a for a in arrivals[fate.device] if a.number == fate.number]
        if plans[fate.number].reliability is Reliability.BEST_EFFORT:
            # A device that died may have sent the same message twice: those are two messages.
            had = [a for a in had if a.key == fate.key]
        _judge_delivery(verdict, plans[fate.number], fate, had, plain=fate.device in plain)
        if fate.number in ranks:
            _judge_rank(verdict, plans[fate.number], fate, had, ranks[fate.number])
    for device, had in arrivals.items():
        for arrival in had:
            if (device, arrival.number) not in fate_of:
                verdict.add(
                    "untrue", f"{device} was shown {arrival.number}, which was not sent to it"
                )
        _judge_order(verdict, plans, device, had)
    return verdict


def _judge_rank(
    verdict: RehearsalVerdict,
    plan: PlannedMessage,
    fate: Fate,
    had: list[ArrivedMessage],
    rank: float,
) -> None:
    """Check that a user who reads until nothing is left has seen everything at or above Threshold.

    A message whose rank fell may have been seen before on a device that did not know of the fall:
    it is delivered then, and that is true. If it was not seen, it ends with the subscription.
    """
    if rank < THRESHOLD or plan.ttl is not None:
        return
    if not had:
        about = f"message {fate.number} for {fate.device} ({fate.state.name}, rank {rank:g})"
        verdict.add("lost", f"{about} counts, and was never shown")


def _judge_delivery(
    verdict: RehearsalVerdict,
    plan: PlannedMessage,
    fate: Fate,
    had: list[ArrivedMessage],
    *,
    plain: bool,
) -> None:
    about = f"message {fate.number} for {fate.device} ({fate.state.name}, {plan.reliability.name})"
    if not fate.state.final:
        verdict.add("lost", f"{about} is still open")
    if len(had) > 1 and not _may_repeat(plan, had, plain=plain):
        verdict.add("duplicated", f"{about} was shown {len(had)} times")
    # If receipt is enough, the device may have died before it showed the message.
    receipt_is_enough = plan.reliability is Reliability.AT_LEAST_ONCE_DELIVERY
    if fate.state is State.DELIVERED and not had and not receipt_is_enough:
        verdict.add("lost", f"{about} was never shown")
    # The message was shown, but the device died before it could note that, and then it expired.
    noted = not (plain and fate.state is State.EXPIRED)
    if fate.state in NEVER_SHOWN and had and noted:
        verdict.add("untrue", f"{about} was shown all the same")


def _may_repeat(plan: PlannedMessage, had: list[ArrivedMessage], *, plain: bool) -> bool:
    """Return whether a message may have been shown again. Below exactly-once, a crash of the device
    allows that, if the repetition is marked.

    Best effort promises nothing, and a link may duplicate its messages.
    """
    if plan.reliability is Reliability.BEST_EFFORT:
        return True
    at_least_once = plain or plan.reliability in (
        Reliability.AT_LEAST_ONCE_DELIVERY,
        Reliability.AT_LEAST_ONCE_PROCESSING,
    )
    return at_least_once and all(arrival.redelivered for arrival in had[1:])


def _judge_order(
    verdict: RehearsalVerdict,
    plans: dict[int, PlannedMessage],
    device: str,
    had: list[ArrivedMessage],
) -> None:
    """Check that the messages of a lane (source, device, priority) came in the order of sending.

    A delayed message takes its place when its delay is over, so it is left out here.
    """
    newest: dict[tuple[str, int, str | None, bool], int] = defaultdict(int)
    seen: Counter[int] = Counter()
    for arrival in had:
        plan = plans[arrival.number]
        if plan.target == RANKED_TARGET or plan.binding or plan.target.startswith("queue:"):
            continue  # The order depends on ranks or on other members.
        seen[arrival.number] += 1
        if plan.delay is not None or seen[arrival.number] > 1:
            continue
        if plan.reliability is not Reliability.EXACTLY_ONCE or plan.queue == LOOSE:
            continue
        # Numbers ascend among messages for a group, and among all others.
        lane = (plan.source, plan.priority, plan.queue, plan.target.startswith("group:"))
        if arrival.number < newest[lane]:
            verdict.add("misordered", f"{device} had {arrival.number} after {newest[lane]}")
        newest[lane] = max(newest[lane], arrival.number)
