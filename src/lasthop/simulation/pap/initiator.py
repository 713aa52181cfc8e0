"""An initiator in rehearsal: it repeats a push until it is answered, cancels, and keeps the results
it receives. It reads and writes real documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random

from lasthop.clock import MILLISECOND, SECOND, Micros
from lasthop.core.gateway import Gateway
from lasthop.core.lifecycle import RELIABILITY_OF_METHOD
from lasthop.core.publishing.submission import Submission
from lasthop.core.pushes.feature import Order
from lasthop.core.pushes.push_ids import DuplicatePush, identify
from lasthop.core.pushes.report import reports_of
from lasthop.errors import Expired, LasthopError
from lasthop.message import Reliability, Target, TargetKind
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.pap.schedule import PapSchedule, PlannedPush
from lasthop.simulation.publisher import APP
from lasthop.store.base import Store
from lasthop.store.pushes import KnownPush
from lasthop.wire.pap.answers import AnswerVerdict, PapAnswer, judge_answer
from lasthop.wire.pap.documents import (
    Document,
    ResultNotificationMessage,
    ResultNotificationResponse,
)
from lasthop.wire.pap.outcomes import PushReport, cancel_code
from lasthop.wire.pap.submission import PapSubmission as Body, read_submission, write_submission
from lasthop.wire.pap.versions import Version

SOURCE = "publisher:initiator"
URL = "http://initiator.rehearsal/results"
TIMEOUT = 30 * SECOND


@dataclass(slots=True)
class InitiatorMemory:
    """What the initiator knows at the end of a rehearsal."""

    accepted: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)
    results: dict[tuple[str, str], list[tuple[str, int]]] = field(default_factory=dict)
    """Results for each push-id and address, in order of arrival."""
    cancelled: dict[tuple[int, str], int] = field(default_factory=dict)
    """The status code of each answered cancellation, by push and address."""


class InitiatorNode:
    """Submits pushes, and receives results except in its outages."""

    def __init__(
        self, kernel: Kernel, random: Random, gateway: GatewayNode, schedule: PapSchedule
    ) -> None:
        self._kernel = kernel
        self._random = random
        self._gateway = gateway
        self._outages = schedule.outages
        self._begin: Micros = 0
        self._waiting: set[int] = set()
        self.memory = InitiatorMemory()

    @property
    def busy(self) -> bool:
        """Whether a push has not been answered yet."""
        return bool(self._waiting)

    def begin(self, plans: list[PlannedPush]) -> None:
        """Submit all pushes, each at its time."""
        self._begin = self._kernel.now()
        for plan in plans:
            self._waiting.add(plan.number)
            self._kernel.at(self._begin + plan.at, partial(self._attempt, plan))

    def _attempt(self, plan: PlannedPush) -> None:
        """Submit a push, and again if there is no answer."""
        if plan.number not in self._waiting:
            return
        said: list[LasthopError | None] = []

        def act(gateway: Gateway, now: Micros) -> None:
            try:
                gateway.pushes.submit(APP, SOURCE, self.order(plan, now), now)
                said.append(None)
            except LasthopError as error:
                said.append(error)

        self._gateway.act(act, lambda: self._answered(plan, said[0]))
        again = self._random.choice((1 * MILLISECOND, SECOND, 3 * SECOND))
        self._kernel.after(again, partial(self._attempt, plan))

    def order(self, plan: PlannedPush, now: Micros) -> Order:
        """Return the order for a planned push, as the PAP door would make it."""
        store = self._gateway.store
        assert store is not None
        start = self._begin + plan.at
        after = start + plan.delay if plan.delay is not None else None
        before = None if plan.ttl is None else max(start, after or 0, now) + plan.ttl
        reliability = RELIABILITY_OF_METHOD[plan.method]
        submission = Submission(
            target=Target(TargetKind.PUSH, ""),
            body=str(plan.number).encode(),
            deliver_after=after,
            deliver_before=before,
            method=plan.method,
            reliability=Reliability.EXACTLY_ONCE if reliability is None else reliability,
        )
        old = f"{plan.replaces}@initiator" if plan.replaces is not None else None
        return Order(
            push_id=plan.push_id,
            addresses=plan.addresses,
            submission=submission,
            notify_to=URL,
            version=str(Version.V2_1),
            known=known_push(store, plan.push_id),
            replace=plan.how if old is not None else None,
            replaced=known_push(store, old) if old is not None else None,
        )

    def _answered(self, plan: PlannedPush, error: LasthopError | None) -> None:
        if plan.number not in self._waiting:
            return
        self._waiting.discard(plan.number)
        # A duplicate is this initiator's own push whose answer was lost.
        if error is None or isinstance(error, DuplicatePush):
            self.memory.accepted.add(plan.number)
            if plan.cancel_after is not None:
                self._kernel.after(plan.cancel_after, partial(self._cancel, plan))
        elif not isinstance(error, Expired):
            self.memory.refused[plan.number] = type(error).__name__

    def _cancel(self, plan: PlannedPush) -> None:
        """Cancel once, and note the gateway's answer so that it can be judged."""
        answers: list[tuple[str, int]] = []

        def act(gateway: Gateway, now: Micros) -> None:
            store = self._gateway.store
            assert store is not None
            known = known_push(store, plan.push_id)
            assert known is not None, "an accepted push is unknown"
            try:
                codes = gateway.pushes.cancel(known, plan.cancelled, now)
            except LasthopError:
                return
            if codes is None:
                stored = stored_reports(store, known)
                codes = [(text, cancel_code(report)) for text, report in stored.items()]
            answers.extend(codes)

        self._gateway.act(act, lambda: self._cancel_answered(plan, answers))

    def _cancel_answered(self, plan: PlannedPush, answers: list[tuple[str, int]]) -> None:
        for text, code in answers:
            if not plan.cancelled or text in plan.cancelled:
                self.memory.cancelled[plan.number, text] = code

    # Results from the gateway.

    def told(self, content_type: str, body: bytes, answered: Callable[[PapAnswer], None]) -> None:
        """Receive a result after a network delay."""
        delay = self._random.randint(MILLISECOND, 200 * MILLISECOND)
        self._kernel.after(delay, partial(self._arrived, content_type, body, answered))

    def _arrived(
        self, content_type: str, body: bytes, answered: Callable[[PapAnswer], None]
    ) -> None:
        since = self._kernel.now() - self._begin
        if any(start <= since < end for start, end in self._outages):
            answered(PapAnswer(AnswerVerdict.UNREACHABLE, "connection refused"))
            return
        message = read_submission(content_type, body).document.message
        assert isinstance(message, ResultNotificationMessage)
        heard = self.memory.results.setdefault((message.push_id, message.address), [])
        heard.append((str(message.state), message.code))
        luck = self._random.random()
        if luck < 0.05:
            lost = PapAnswer(AnswerVerdict.UNREACHABLE, "no answer in 30 seconds")
            self._kernel.after(TIMEOUT, lambda: answered(lost))
        elif luck < 0.1:
            answered(judge_answer(503, "", b""))
        elif luck < 0.15:
            answered(judge_answer(*self._answer(message, 4000)))
        else:
            answered(judge_answer(*self._answer(message, 1000)))

    def _answer(self, message: ResultNotificationMessage, code: int) -> tuple[int, str, bytes]:
        response = ResultNotificationResponse(code, message.push_id, message.address)
        return 202, *write_submission(Body(Document(response, Version.V2_1)))


def known_push(store: Store, push_id: str) -> KnownPush | None:
    """Return what a store has of one of the initiator's pushes, or None."""
    identity = identify(APP, SOURCE, push_id)
    return store.find(KnownPush, [identity]).get(identity)


def stored_reports(store: Store, known: KnownPush) -> dict[str, PushReport]:
    """Return the reports of a push by address, according to a store."""
    assert known.row is not None
    message = store.messages([known.message])[known.message]
    rows = store.deliveries(known.message)
    return dict(reports_of(known.row, message.accepted_at, message.method, rows))
