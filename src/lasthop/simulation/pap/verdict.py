"""The verdict on a rehearsal of pushes: every address of every push ends in exactly one state, the
initiator is told, and the state is true."""

from __future__ import annotations

from collections import Counter

from lasthop.message import DeliveryMethod
from lasthop.simulation.pap.initiator import InitiatorMemory, known_push, stored_reports
from lasthop.simulation.pap.schedule import PapSchedule, PlannedPush
from lasthop.simulation.verdict import ArrivedMessage, RehearsalVerdict
from lasthop.store.base import Store
from lasthop.wire.pap.codes import STATES, MessageState
from lasthop.wire.pap.documents import ReplaceMethod
from lasthop.wire.pap.outcomes import PushReport

UNSEEN = frozenset({MessageState.CANCELLED, MessageState.EXPIRED, MessageState.REJECTED})
"""States in which no device of the person has received the push: otherwise it would be
delivered."""

_UNCONFIRMED = frozenset({DeliveryMethod.UNCONFIRMED, DeliveryMethod.ONESHOT})


def judge(
    schedule: PapSchedule,
    memory: InitiatorMemory,
    store: Store,
    had: dict[str, list[ArrivedMessage]],
) -> RehearsalVerdict:
    """Compare what the initiator was told with what the store says and what the devices have
    shown."""
    verdict = RehearsalVerdict()
    shown = {name: Counter(a.number for a in arrivals) for name, arrivals in had.items()}
    for plan in schedule.plans:
        known = known_push(store, plan.push_id)
        if plan.number not in memory.accepted:
            if any(push_id == plan.push_id for push_id, _ in memory.results):
                verdict.add("untrue", f"push {plan.number} was not accepted and has a result")
            continue
        if known is None:
            verdict.add("lost", f"push {plan.number} was accepted and is unknown")
            continue
        reports = stored_reports(store, known)
        if set(reports) != set(plan.addresses):
            verdict.add("lost", f"push {plan.number} does not report on all of its addresses")
        for text, report in reports.items():
            _judge_address(verdict, schedule, memory, shown, plan, text, report)
        if plan.replaces is not None and plan.how is ReplaceMethod.PENDING_ONLY:
            for name, counts in shown.items():
                if counts[plan.number] and counts[plan.replaces]:
                    both = f"{plan.replaces} and what replaced it only where that was pending"
                    verdict.add("untrue", f"{name} had {both}")
        for name, counts in shown.items():
            if counts[plan.number] > 1 and plan.method not in _UNCONFIRMED:
                verdict.add("duplicated", f"{name} had push {plan.number} twice")
    return verdict


def _judge_address(
    verdict: RehearsalVerdict,
    schedule: PapSchedule,
    memory: InitiatorMemory,
    shown: dict[str, Counter[int]],
    plan: PlannedPush,
    text: str,
    report: PushReport,
) -> None:
    about = f"push {plan.number} at {text}"
    if not STATES[report.state].final:
        verdict.add("lost", f"{about} never came to an end")
    heard = memory.results.get((plan.push_id, text), [])
    if not heard:
        verdict.add("lost", f"the initiator was not told that {about} is {report.state}")
    if len(set(heard)) > 1:
        verdict.add("duplicated", f"{about} has several outcomes: {sorted(set(heard))}")
    elif heard and heard[0] != (str(report.state), report.code):
        verdict.add(
            "untrue", f"{about} is {report.state}, and the initiator was told {heard[0][0]}"
        )
    staying = [d for d in schedule.reached(text) if d in shown]
    if report == (MessageState.UNDELIVERABLE, 2003, *report[2:]) and staying:
        verdict.add("lost", f"{about} was for {staying[0]}, and was never tried")
    seen = [d for d in schedule.reached(text) if shown.get(d, Counter())[plan.number]]
    other = {d for a in plan.addresses if a != text for d in schedule.reached(a)}
    if report.state in UNSEEN and any(device not in other for device in seen):
        verdict.add("untrue", f"{about} is {report.state}, and {seen[0]} had it")
    confirmed = plan.method not in _UNCONFIRMED
    if report.state is MessageState.DELIVERED and confirmed and not seen:
        verdict.add("untrue", f"{about} is delivered, and no device was given it")
    _judge_cancelling(verdict, memory, plan, text, report)


def _judge_cancelling(
    verdict: RehearsalVerdict,
    memory: InitiatorMemory,
    plan: PlannedPush,
    text: str,
    report: PushReport,
) -> None:
    code = memory.cancelled.get((plan.number, text))
    if code == 1000 and report.state is not MessageState.CANCELLED:
        about = f"push {plan.number} at {text}"
        verdict.add("untrue", f"{about} was said to be cancelled, and is {report.state}")
