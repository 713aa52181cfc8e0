"""Carrying out a surrogate's verdict: it is checked as a whole, then done as a whole.

Until `check` returns nothing has changed; after it nothing can be refused. Everything that is done
is in the open commit, together with the end of the consultation.
"""

from __future__ import annotations

import msgspec

from lasthop.clock import Micros
from lasthop.core.contacts.refusal import refuse
from lasthop.core.contacts.replies import answered
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery
from lasthop.core.lifecycle import Step
from lasthop.core.names import parse_target
from lasthop.core.publishing.acceptance import Acceptance
from lasthop.core.publishing.submission import Submission, submission_of
from lasthop.core.surrogates.revision import Revision
from lasthop.core.surrogates.waiting import Consultation, Failing, SurrogateQueue
from lasthop.errors import InvalidRequest, LasthopError, SurrogateFailed, TooLarge
from lasthop.events import Kind
from lasthop.message import Message, Target, TargetKind
from lasthop.store.surrogates import StateRow, SurrogateChanges
from lasthop.surrogate.mail import Content, MailAction, OutgoingMail, Verdict, changed
from lasthop.surrogate.surrogate import MOST_SENDS


class VerdictRules:
    """Carries out the verdicts of surrogates."""

    def __init__(self, deliveries: Deliveries, acceptance: Acceptance) -> None:
        self._deliveries = deliveries
        self._acceptance = acceptance

    def check(
        self, queue: SurrogateQueue, consultation: Consultation, verdict: Verdict, now: Micros
    ) -> Message | None:
        """Accept the messages that the surrogate sends, all or none; return its answer, if it gives
        one. Raises `LasthopError` when the verdict as a whole cannot be followed."""
        size, limit = queue.size_with(verdict.state), queue.terms.state
        if size > limit:
            raise TooLarge("the surrogate's state is too large", size=size, limit=limit)
        if len(verdict.sends) > MOST_SENDS:
            raise TooLarge(
                "the surrogate sends too many messages", count=len(verdict.sends), limit=MOST_SENDS
            )
        if verdict.content is not None:
            body = self._deliveries.limits.body
            if len(verdict.content.body) > body:
                raise TooLarge("body too large", size=len(verdict.content.body), limit=body)
        submissions = [_submission(send, now) for send in verdict.sends]
        answers = verdict.action is MailAction.ANSWER and not consultation.over
        if answers:
            submissions.append(_answer(consultation, verdict.content or Content()))
        if not submissions:
            return None
        device = consultation.session.device
        messages = self._acceptance.accept(device.app, f"surrogate:{device.name}", submissions, now)
        return messages[-1] if answers else None

    def remember(self, queue: SurrogateQueue, verdict: Verdict) -> None:
        """Store the changes of the surrogate's state."""
        if verdict.state:
            queue.change(verdict.state)
            rows = self._deliveries.commits.open.of(SurrogateChanges).states
            for name, value in verdict.state.items():
                rows[queue.app, name] = StateRow(queue.app, name, value)

    def apply(
        self,
        queue: SurrogateQueue,
        consultation: Consultation,
        verdict: Verdict,
        answer: Message | None,
        now: Micros,
    ) -> None:
        """Relay, answer or drop the message, as the surrogate decided."""
        if verdict.action is MailAction.RELAY:
            content = verdict.content
            before = consultation.content
            told = "relayed by its surrogate"
            queue.outcomes["relayed" if content is None else "changed"] += 1
            if content is not None and before is not None:
                told = f"changed by its surrogate: {', '.join(changed(before, content))}"
            self.pass_on(consultation, content, told, now)
        elif verdict.action is MailAction.ANSWER:
            queue.outcomes["answered"] += 1
            assert answer is not None
            if consultation.delivery is not None:
                request = consultation.item.message.key
                answered(self._deliveries, consultation.session, request, answer, now)
            self._stop(consultation, "answered by its surrogate", now)
        else:
            queue.outcomes["dropped"] += 1
            because = f": {verdict.reason}" if verdict.reason else ""
            self._stop(consultation, f"dropped by its surrogate{because}", now)

    def give_up(
        self, queue: SurrogateQueue, consultation: Consultation, reason: str, now: Micros
    ) -> None:
        """Relay or refuse a message at which the surrogate failed, as its terms say."""
        if queue.terms.failing is Failing.RELAY:
            told = f"relayed as it is, since its surrogate failed: {reason}"
            self.pass_on(consultation, None, told, now)
            return
        told = f"refused, since its surrogate failed: {reason}"
        self._stop(consultation, told, now)
        if consultation.delivery is None:
            error = SurrogateFailed("the surrogate of this app failed")
            key = consultation.sent_as or None
            refuse(self._acceptance, consultation.session, key, error, now)

    def pass_on(
        self, consultation: Consultation, content: Content | None, told: str, now: Micros
    ) -> None:
        """Let the message go on, perhaps with other content."""
        delivery = consultation.delivery
        if delivery is not None:
            remark(self._deliveries, consultation, told, now)
            if content is not None:
                self._revise(delivery, content, now)
            delivery.session.enqueue(delivery)
            self._deliveries.touch(delivery.session)
            return
        self.let_fall(consultation)
        message = consultation.item.message
        submission = submission_of(message)
        content = content or consultation.content
        if content is not None:
            submission = msgspec.structs.replace(submission, **msgspec.structs.asdict(content))
        try:
            # Under a new key, even if nothing has changed, so that keys are in the order of
            # verdicts.
            (message,) = self._acceptance.accept(message.app, message.source, [submission], now)
        except LasthopError as error:
            remark(self._deliveries, consultation, told, now)
            # The target is gone, or it is too late: the sender is told of the refusal as always.
            key = consultation.sent_as or None
            refuse(self._acceptance, consultation.session, key, error, now)
            return
        # The log names the message that others get.
        remark(self._deliveries, consultation, told, now, message.key)
        if consultation.answers:
            answered(self._deliveries, consultation.session, consultation.answers, message, now)

    def let_fall(self, consultation: Consultation) -> None:
        """Forget a message from a device, because it is not sent on."""
        consultation.item.spreading = False
        self._deliveries.release(consultation.item)

    def _revise(self, delivery: Delivery, content: Content, now: Micros) -> None:
        deliveries = self._deliveries
        key = deliveries.keys.key(now)
        message = msgspec.structs.replace(delivery.item.message, **msgspec.structs.asdict(content))
        device = delivery.session.device
        deliveries.commits.add_message(
            msgspec.structs.replace(
                message,
                key=key,
                salt=deliveries.keys.salt(),
                target=Target(TargetKind.DEVICE, device.name),
            )
        )
        Revision(deliveries, delivery, message, key, len(content.body)).note(
            device.number, open=True
        )

    def _stop(self, consultation: Consultation, told: str, now: Micros) -> None:
        if consultation.delivery is not None:
            self._deliveries.step(consultation.delivery, Step.SUPPRESS, now, told)
        else:
            remark(self._deliveries, consultation, told, now)
            self.let_fall(consultation)


def remark(
    deliveries: Deliveries,
    consultation: Consultation,
    told: str,
    now: Micros,
    key: int | None = None,
) -> None:
    """Record what the surrogate did; for a message from a device, with the key under which the
    message is sent on."""
    delivery = consultation.delivery
    if delivery is not None:
        deliveries.commits.record_step(delivery, Kind.CONSULTED, now, told)
        return
    message = consultation.item.message
    deliveries.commits.record(
        Kind.VETTED,
        now,
        consultation.session,
        msg=key or message.key,
        reason=told,
        target=str(message.target),
        other=consultation.answers,
    )


def _submission(send: OutgoingMail, now: Micros) -> Submission:
    content = send.content
    return Submission(
        target=parse_target(send.to),
        priority=send.priority,
        deliver_before=None if send.ttl is None else now + send.ttl,
        **msgspec.structs.asdict(content),
    )


def _answer(consultation: Consultation, content: Content) -> Submission:
    """Return the answer to the sender of a message; a device knows its requests by its own keys."""
    request = consultation.item.message
    kind, _, name = request.source.partition(":")
    if kind == TargetKind.DEVICE:
        target = Target(TargetKind.DEVICE, name)
        about = request.correlation or consultation.sent_as or request.key
    else:
        target, about = Target(TargetKind.PUBLISHER, ""), request.key
    if consultation.answers:
        raise InvalidRequest("the answer of a device cannot be answered")
    return Submission(
        target=target,
        in_reply_to=about,
        answer=target.kind is TargetKind.DEVICE,
        **msgspec.structs.asdict(content),
    )
