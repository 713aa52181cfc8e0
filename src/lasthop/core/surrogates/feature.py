"""Surrogates as a feature: a message of their apps waits, durably, until its surrogate has decided.

A mail may be given to the surrogate several times, but takes effect once: the changes of the state,
the messages that it caused and the end of the wait are in one commit. A message at which the
surrogate fails too often goes on unchanged, or is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from lasthop.clock import MILLISECOND, Micros
from lasthop.core.contacts.channel_state import ChannelState
from lasthop.core.delivery import Delivery, Item
from lasthop.core.effects import Consult, Fetch
from lasthop.core.envelope import PLAIN_HEADERS
from lasthop.core.feature import Arrival, CoreFeature, DeliveryObserver, Gate
from lasthop.core.publishing.submission import Submission
from lasthop.core.session import Session
from lasthop.core.spine import Spine
from lasthop.core.surrogates.revision import Revision
from lasthop.core.surrogates.verdicts import VerdictRules, remark
from lasthop.core.surrogates.waiting import Consultation, SurrogateQueue
from lasthop.errors import LasthopError, QuotaExceeded
from lasthop.message import GATEWAY, Message, TargetKind
from lasthop.store.commit import DeliveryRow, Restored
from lasthop.store.surrogates import ConsultRow, RevisionRow, SurrogateChanges, SurrogatesRestored
from lasthop.surrogate.mail import Verdict
from lasthop.wire.hop.frames import MessageFrame

FIRST_REST = 100 * MILLISECOND
"""The pause after a first failure: long enough for a passing trouble, short compared with the
deadline of a message. Each further pause is four times as long."""

NOT_ASKED = ("surrogate:", GATEWAY)
"""Sources whose messages no surrogate is asked about: surrogates themselves, and the gateway."""

REMEMBERED_REASON = 200


BY_SURROGATE = "surrogate:"


class AnsweredForDevice(Gate):
    """Sends an answer that a surrogate gave for a device as the device's own answer."""

    def frame(self, delivery: Delivery, channel: ChannelState, frame: MessageFrame) -> MessageFrame:
        name = delivery.item.message.source.removeprefix(BY_SURROGATE)
        headers = replace(frame.headers or PLAIN_HEADERS, source=f"device:{name}")
        return replace(frame, headers=headers)


class SurrogateFeature(CoreFeature, Gate, DeliveryObserver):
    """The queues of all apps that have a surrogate."""

    def __init__(self, spine: Spine) -> None:
        self._deliveries = spine.deliveries
        self._acceptance = spine.acceptance
        terms = spine.identity.surrogates
        self._outcomes = VerdictRules(spine.deliveries, spine.acceptance)
        self._touched: dict[str, SurrogateQueue] = {}
        self._queues = {
            app: SurrogateQueue(app, of_app, self._touch) for app, of_app in terms.items()
        }
        self._awaited: dict[tuple[int, int], Consultation] = {}
        """Deliveries that wait for a verdict, by message and device."""
        self._held: dict[int, Consultation] = {}
        """Messages of devices that wait for a verdict, by message key."""
        self._number = 0
        self._rows: dict[tuple[int, int], ConsultRow] = {}
        self._held_rows: dict[int, ConsultRow] = {}
        self._revisions: dict[tuple[int, int], RevisionRow] = {}
        self._restored_held: Iterable[Message] = ()

    def needed(self, restored: Restored) -> bool:
        kept = restored.of(SurrogatesRestored)
        return bool(self._queues or kept.consults or kept.revisions)

    # The gate of an app's messages.

    def owned(self, item: Item) -> None:
        message = item.message
        if message.app in self._queues and not message.source.startswith(NOT_ASKED):
            item.gates = (*item.gates, self)

        elif message.source.startswith(BY_SURROGATE) and message.answer:
            item.gates = (*item.gates, AnsweredForDevice())

    def keeps(self, delivery: Delivery) -> str:
        return "waits for its surrogate"

    def capacity(self, app: str) -> int:
        queue = self._queues.get(app)
        return 1 << 62 if queue is None else max(0, queue.terms.queue - queue.waiting)

    def admit(self, app: str, source: str, submissions: Sequence[Submission]) -> None:
        """Refuse messages for single devices while too many messages wait. Messages for many
        devices are accepted: their deliveries begin when there is room."""
        if not self.capacity(app) and not source.startswith(NOT_ASKED):
            for submission in submissions:
                if submission.target.kind is TargetKind.DEVICE:
                    raise self._full(app)

    def _full(self, app: str) -> QuotaExceeded:
        limit = self._queues[app].terms.queue
        return QuotaExceeded("too many messages wait for the surrogate", retry_after=5, limit=limit)

    def keep(self, delivery: Delivery, *, ready: bool) -> None:
        consultation = Consultation(
            self._next(), delivery.session, delivery.item, delivery=delivery
        )
        self._wait(consultation, ready=ready)

    def due(self, delivery: Delivery) -> bool:
        number = delivery.session.device.number
        consultation = self._awaited.get((delivery.item.message.key, number))
        if consultation is None:
            return False
        self._ready(consultation)
        return True

    def ended(self, delivery: Delivery) -> None:
        """End the consultation of a delivery that has ended."""
        key = (delivery.item.message.key, delivery.session.device.number)
        consultation = self._awaited.get(key)
        if consultation is not None:
            self._close(consultation)

    def intake(self, arrival: Arrival, now: Micros) -> bool:
        """Hold a message of a device until the surrogate has decided."""
        session = arrival.session
        device = session.device
        if device.app not in self._queues:
            return False
        if not self.capacity(device.app):
            raise self._full(device.app)
        source = f"device:{device.name}"
        item = self._acceptance.hold(device.app, source, arrival.submission, now)
        consultation = Consultation(
            self._next(),
            session,
            item,
            answers=arrival.answers_to,
            sent_as=arrival.frame.key or 0,
        )
        self._wait(consultation, ready=True)
        return True

    def forgotten(self, session: Session) -> None:
        """Drop the waiting messages of a device that is being removed."""
        for consultation in [c for c in self._held.values() if c.session is session]:
            self._close(consultation)
            self._outcomes.let_fall(consultation)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _wait(self, consultation: Consultation, *, ready: bool) -> None:
        self._note(consultation)
        self._keep(consultation, ready=ready)

    def _note(self, consultation: Consultation, *, done: bool = False) -> None:
        row = consultation.row(done=done)
        self._deliveries.commits.open.of(SurrogateChanges).consults[row.number] = row

    def _keep(self, consultation: Consultation, *, ready: bool) -> None:
        key = consultation.item.message.key
        if consultation.delivery is None:
            self._held[key] = consultation
        else:
            consultation.item.observe(self)
            self._awaited[key, consultation.session.device.number] = consultation
        self._queues[consultation.session.device.app].waiting += 1
        if ready:
            self._ready(consultation)

    def _ready(self, consultation: Consultation) -> None:
        queue = self._queues[consultation.session.device.app]
        if not consultation.ready:
            consultation.ready = True
            queue.put(consultation)
            self._touch(queue)

    def _close(self, consultation: Consultation) -> None:
        """End a consultation, whatever became of it."""
        consultation.over = True
        self._note(consultation, done=True)
        key = consultation.item.message.key
        if consultation.delivery is None:
            del self._held[key]
        else:
            del self._awaited[key, consultation.session.device.number]
        self._queues[consultation.session.device.app].waiting -= 1

    def _touch(self, queue: SurrogateQueue) -> None:
        self._touched[queue.app] = queue

    # The driver.

    def after_settling(self, now: Micros) -> None:
        """Give surrogates the mails that wait for them."""
        if not self._touched:
            return
        queues, self._touched = self._touched, {}
        for queue in queues.values():
            given = queue.take()
            if given:
                self._deliveries.effects.append(Consult(queue.app, [c.mail(now) for c in given]))
            elif queue.fetching is not None:
                self._deliveries.effects.append(Fetch([queue.fetching]))

    def fetched(self, messages: Mapping[int, Message], now: Micros) -> None:
        """Handle bodies that were read from the store; other features may have asked for some of
        them."""
        for queue in self._queues.values():
            if queue.fetching in messages:
                key, queue.fetching = queue.fetching, None
                assert key is not None
                item = self._deliveries.items.get(key)
                if item is not None:
                    self._deliveries.refill(item, messages[key].body)
                self._touch(queue)
        self.after_settling(now)

    def consulted(self, app: str, number: int, verdict: Verdict, now: Micros) -> str | None:
        """Carry out the surrogate's verdict about the next of the mails that it was given. Return
        None, or the reason if the verdict cannot be followed: then nothing of it counts, and the
        surrogate starts over from the stored state."""
        queue = self._queues.get(app)
        if queue is None or not queue.flight or queue.flight[0].number != number:
            return "the surrogate was not asked about this"
        consultation = queue.flight[0]
        try:
            made = self._outcomes.check(queue, consultation, verdict, now)
        except LasthopError as error:
            self.failed(app, number, str(error), now)
            return str(error)
        queue.flight.popleft()
        # The state changes even if the message ended meanwhile: the surrogate has seen it.
        self._outcomes.remember(queue, verdict)
        if not consultation.over:
            self._close(consultation)
            self._outcomes.apply(queue, consultation, verdict, made, now)
        self._deliveries.commits.hurry()
        self._touch(queue)
        return None

    def failed(
        self, app: str, number: int, reason: str, now: Micros, *, hopeless: bool = False
    ) -> None:
        """Note that the surrogate failed at the next of the mails that it was given; `hopeless`
        when it cannot deal with any of them."""
        queue = self._queues.get(app)
        if queue is None or not queue.flight or queue.flight[0].number != number:
            return
        given = list(queue.flight)
        queue.give_back()
        queue.outcomes["failed"] += 1
        self._touch(queue)
        reason = reason[:REMEMBERED_REASON]
        if hopeless:
            for consultation in given:
                self._give_up(queue, consultation, reason, now)
        elif not given[0].over:
            self._failed(queue, given[0], reason, now)

    def _failed(
        self, queue: SurrogateQueue, consultation: Consultation, reason: str, now: Micros
    ) -> None:
        consultation.attempts += 1
        limit = queue.terms.attempts
        if consultation.attempts >= limit:
            self._give_up(queue, consultation, reason, now)
            return
        told = f"its surrogate failed ({consultation.attempts} of {limit}): {reason}"
        remark(self._deliveries, consultation, told, now)
        self._note(consultation)
        queue.resting = True
        self._deliveries.timers.add(now + (FIRST_REST << 2 * (consultation.attempts - 1)), queue)

    def _give_up(
        self, queue: SurrogateQueue, consultation: Consultation, reason: str, now: Micros
    ) -> None:
        if not consultation.over:
            self._close(consultation)
            self._outcomes.give_up(queue, consultation, reason, now)

    def post(self, app: str) -> SurrogateQueue | None:
        """Return the queue of an app, for inspection; None if the app has no surrogate."""
        return self._queues.get(app)

    @property
    def waiting(self) -> int:
        """Number of waiting messages of all apps."""
        return sum(queue.waiting for queue in self._queues.values())

    def outcomes(self) -> dict[tuple[str, ...], int]:
        """Return the number of messages since the start, by app and outcome."""
        return {
            (app, outcome): count
            for app, queue in self._queues.items()
            for outcome, count in queue.outcomes.items()
        }

    # After a restart.

    def restore(self, restored: Restored, now: Micros) -> None:
        kept = restored.of(SurrogatesRestored)
        self._restored_held = kept.held
        for row in kept.consults:
            if row.from_device:
                self._held_rows[row.message] = row
            else:
                self._rows[row.message, row.device] = row
            self._number = max(self._number, row.number)
        for state in kept.states:
            queue = self._queues.get(state.app)
            if queue is not None:
                queue.restore(state.name, state.value)
        for revision in kept.revisions:
            self._revisions[revision.message, revision.device] = revision

    def reopening(self, delivery: Delivery, row: DeliveryRow) -> None:
        """Give a restored delivery the content that its surrogate made of it."""
        key = (delivery.item.message.key, delivery.session.device.number)
        revision = self._revisions.pop(key, None)
        if revision is not None:
            message = replace(
                delivery.item.message,
                body=b"",
                content_type=revision.content_type,
                title=revision.title,
                headers=revision.headers,
                rank=revision.rank,
            )
            Revision(self._deliveries, delivery, message, revision.content, revision.size)

    def reopened(self, delivery: Delivery, now: Micros) -> bool:
        key = (delivery.item.message.key, delivery.session.device.number)
        row = self._rows.pop(key, None)
        if row is None:
            return False
        consultation = Consultation(row.number, delivery.session, delivery.item, delivery=delivery)
        consultation.attempts = row.attempts
        if row.app not in self._queues:
            self._note(consultation, done=True)
            remark(self._deliveries, consultation, "its surrogate is no longer there", now)
            return False
        after = delivery.item.message.deliver_after
        self._keep(consultation, ready=after is None or after <= now)
        return True

    def finish(self, now: Micros) -> None:
        """Hold again the messages of devices, after all deliveries were restored."""
        for message in self._restored_held:
            self._hold_again(self._held_rows.pop(message.key), message, now)
        for row in (*self._rows.values(), *self._held_rows.values()):
            row.done = True
            self._deliveries.commits.open.of(SurrogateChanges).consults[row.number] = row
        self._rows.clear()
        self._held_rows.clear()
        self._revisions.clear()

    def _hold_again(self, row: ConsultRow, message: Message, now: Micros) -> None:
        device = self._deliveries.registry.numbered(row.device)
        if device is None:
            self._held_rows[row.message] = row
            return
        item = self._deliveries.own(message)
        item.spreading = True
        consultation = Consultation(
            row.number,
            self._deliveries.session(device),
            item,
            answers=row.answers,
            sent_as=row.sent_as,
        )
        consultation.attempts = row.attempts
        if row.app in self._queues:
            self._keep(consultation, ready=True)
        else:
            self._note(consultation, done=True)
            self._outcomes.pass_on(consultation, None, "its surrogate is no longer there", now)
        self._deliveries.evict()
