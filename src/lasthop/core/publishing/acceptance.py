"""From a validated submission to an owned message: targets resolved, deliveries begun, all or
nothing.

Doors validate the form; this module checks what only the gateway knows (which devices exist, whose
mailbox is full, which keys were used) and does so for a whole batch before it changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Item
from lasthop.core.lifecycle import Step
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.publishing.submission import (
    Submission,
    check_immediate,
    check_times,
    message_of,
)
from lasthop.core.registry import Device
from lasthop.errors import (
    Conflict,
    InvalidRequest,
    NobodyThere,
    NotFound,
    QuotaExceeded,
    Rejected,
    TooLarge,
)
from lasthop.events import Kind
from lasthop.message import (
    GATEWAY,
    Message,
    Target,
    TargetKind,
    format_id,
    successor,
)
from lasthop.store.commit import KeyRow

DEVICE = TargetKind.DEVICE

RECENT_KEYS = 100_000
"""The number of idempotency keys remembered in memory; older ones are looked up in the store before
a submission comes in. The number must exceed what can be accepted during such a look-up."""

MOST_LOOKED_FOR = 1_000
"""The largest number of devices among which acceptance looks for one that can be reached; an
immediate message for more of them is accepted, and each of its deliveries finds out."""


@dataclass(frozen=True, slots=True)
class Idempotency:
    """A publisher's key for a request, the request's digest, and the store's row of the key."""

    key: str
    digest: bytes
    found: KeyRow | None = None


def own_key(source: str, key: str) -> str:
    """Return the form of an idempotency key in the store, which differs between sources.

    A key is printable, so that no key contains a line feed itself.
    """
    return f"{source}\n{key}"


class TopicOutcome(NamedTuple):
    """What became of a message that was published to a topic."""

    subscriptions: int
    """The number of subscribers that the message is for; filters may still pass some over."""
    kept: bool
    """Whether the topic remembers the message for those who come later."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to a publisher once the commit is durable: ids in the order of the submissions.

    When the idempotency key was known nothing new is accepted; `repeated` has the keys of the
    messages that it stands for, whose ids are to be read from the store.
    """

    ids: list[str]
    repeated: list[int] | None = None
    outcomes: Sequence[TopicOutcome | None] = ()
    """For each message what became of it in its topic; None if it is not for a topic."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The outcome of a cancellation or replacement: how many deliveries were taken back, and for
    how many it was too late."""

    taken_back: int
    too_late: int


class Acceptance:
    """Accepts messages, and takes them back while that is possible."""

    def __init__(self, deliveries: Deliveries, fanouts: Fanouts) -> None:
        self._deliveries = deliveries
        self._moments = deliveries.moments
        self._fanouts = fanouts
        self._recent: dict[tuple[str, str], KeyRow] = {}

    def remember(self, row: KeyRow) -> None:
        """Remember an idempotency key that was used, and forget the oldest beyond the limit."""
        self._recent[row.app, row.key] = row
        if len(self._recent) > RECENT_KEYS:
            del self._recent[next(iter(self._recent))]

    def publish(
        self,
        app: str,
        source: str,
        submissions: Sequence[Submission],
        now: Micros,
        *,
        once: Idempotency | None,
    ) -> Receipt:
        """Accept a batch, and never twice under one idempotency key."""
        if not submissions:
            raise InvalidRequest("there is nothing to publish")
        repeated = self.repeated(app, source, once) if once is not None else None
        if repeated is not None:
            return Receipt([], repeated)
        if self._deliveries.rights is not None:
            for submission in submissions:
                self.check_right(app, source, submission.target)
        outcomes: list[TopicOutcome | None] = []
        messages = self.accept(app, source, submissions, now, outcomes)
        if once is not None:
            own = own_key(source, once.key)
            row = KeyRow(app, own, once.digest, messages[0].key, len(messages), now)
            self._deliveries.commits.open.keys.append(row)
            self.remember(row)
        return Receipt([format_id(m.key, m.salt) for m in messages], outcomes=outcomes)

    def check_right(self, app: str, source: str, target: Target) -> None:
        """Raise an error unless the source of a message may send it to this target."""
        if self._deliveries.rights is not None:
            self._deliveries.rights.check_message(app, source, target)

    def repeated(self, app: str, source: str, once: Idempotency) -> list[int] | None:
        """Return the keys of the messages that a publisher's idempotency key stands for, from its
        earlier use or the row found in the store; None if the key is new. A different request under
        the same key is a conflict."""
        row = self._recent.get((app, own_key(source, once.key))) or once.found
        if row is None:
            return None
        if row.digest != once.digest:
            raise Conflict("this idempotency key was used for another request", key=once.key)
        keys = [row.first]
        while len(keys) < row.count:
            keys.append(successor(keys[-1]))
        return keys

    def accept(
        self,
        app: str,
        source: str,
        submissions: Sequence[Submission],
        now: Micros,
        outcomes: list[TopicOutcome | None] | None = None,
    ) -> list[Message]:
        """Accept a batch: every submission or none. The error of one among several names its
        index. What becomes of messages to topics is added to `outcomes`."""
        reached: list[Mapping[int, Device]] = []
        try:
            for submission in submissions:
                reached.append(self._check(app, submission, now))
        except Rejected as error:
            if len(submissions) > 1:
                error.fields["item"] = len(reached)
            raise
        self._check_room(source, submissions, reached)
        for admit in self._moments.admit:
            admit(app, source, submissions)
        return [
            self._own(app, source, submission, devices, now, outcomes=outcomes)
            for submission, devices in zip(submissions, reached, strict=True)
        ]

    def cancel(self, app: str, key: int, now: Micros) -> Withdrawal | None:
        """Take a message back from every device that has not been sent it; None if no delivery of
        it is open."""
        item = self.find(app, key)
        for withdrawn in self._moments.withdrawn:
            withdrawn(app, key, now)
        if item is None:
            for take_back in self._moments.take_back:
                taken_back = take_back(app, key, now)
                if taken_back is not None:
                    return Withdrawal(*taken_back)
            return None
        return self.withdraw(item, Step.CANCEL, now, "cancelled by its publisher")

    def replace(
        self, app: str, key: int, source: str, submission: Submission, now: Micros
    ) -> tuple[Withdrawal | None, Message | None]:
        """Put a new message in the place of an old one, for the devices that have not been sent the
        old one."""
        item = self.find(app, key)
        if item is None:
            return None, None
        self.check_right(app, source, submission.target)
        self._check(app, submission, now)
        audience = item.decider.audience()
        if audience is not None:
            devices = dict(audience)
        else:
            devices = {
                d.session.device.number: d.session.device
                for d in item.deliveries
                if self._deliveries.recall(d, now)
            }
            devices.update((device.number, device) for device in self._fanouts.still_to_come(key))
        withdrawal = self.withdraw(item, Step.REPLACE, now, "replaced by its publisher")
        rule = self._moments.targets[submission.target.kind]
        # Everyone has been sent the old one: there is nobody left for the new one.
        if not (devices or withdrawal.taken_back) or not rule.keeps(devices):
            return withdrawal, None
        for withdrawn in self._moments.withdrawn:
            withdrawn(app, key, now)
        return withdrawal, self._own(app, source, submission, devices, now)

    def accept_for(
        self,
        app: str,
        source: str,
        submission: Submission,
        devices: Mapping[int, Device],
        now: Micros,
        *,
        attach: Callable[[Item], None],
    ) -> Message:
        """Accept one message for these devices, at least one; `attach` is called with the message
        before its first delivery."""
        self.check_form(app, submission, now)
        self._check_room(source, [submission], [devices])
        return self._own(app, source, submission, devices, now, attach)

    def hold(self, app: str, source: str, submission: Submission, now: Micros) -> Item:
        """Keep a message without beginning a delivery: the caller decides later whether it is
        accepted again or dropped."""
        self._check(app, submission, now)
        item = self._deliveries.own(self._make(app, source, submission, now))
        item.spreading = True
        return item

    def _check(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        self.check_form(app, submission, now)
        for check in self._moments.check:
            check(submission)
        devices = self._moments.targets[submission.target.kind].reach(app, submission, now)
        if submission.immediate and len(devices) <= MOST_LOOKED_FOR:
            sessions = map(self._deliveries.session, devices.values())
            if not any(session.reachable for session in sessions):
                raise NobodyThere("an immediate message, and nobody can be reached now")
        return devices

    def check_form(self, app: str, submission: Submission, now: Micros) -> None:
        """Raise an error for a submission that the gateway would take from nobody."""
        limits = self._deliveries.limits
        behaviour = self._deliveries.behaviours.get(app)
        if behaviour is not None:
            behaviour.apply(submission, limit=limits.body)
        elif len(submission.body) > limits.body:
            raise TooLarge("body too large", size=len(submission.body), limit=limits.body)
        if submission.deliver_before is not None or submission.delay_tolerance is not None:
            check_times(submission, now)
        if submission.immediate:
            check_immediate(submission)

    def _check_room(
        self, source: str, submissions: Sequence[Submission], reached: list[Mapping[int, Device]]
    ) -> None:
        """Raise an error if the mailbox of a target device is full; for one device among many the
        delivery is suppressed instead."""
        limits = self._deliveries.limits
        alone: dict[Device, int] = {}
        for submission, devices in zip(submissions, reached, strict=True):
            if submission.target.kind is DEVICE:
                for device in devices.values():
                    alone[device] = alone.get(device, 0) + 1
        for device, count in alone.items():
            waiting = len(self._deliveries.session(device).mailbox)
            if count > limits.room(waiting, source):
                limit = limits.room(0, source)
                raise QuotaExceeded("mailbox full", retry_after=60, device=device.name, limit=limit)

    def _own(
        self,
        app: str,
        source: str,
        s: Submission,
        devices: Mapping[int, Device],
        now: Micros,
        attach: Callable[[Item], None] | None = None,
        outcomes: list[TopicOutcome | None] | None = None,
    ) -> Message:
        deliveries = self._deliveries
        message = self._make(app, source, s, now)
        if s.target.kind is not DEVICE:
            deliveries.commits.record(
                Kind.PUBLISHED,
                now,
                app=app,
                msg=message.key,
                source=source,
                target=str(s.target),
                size=len(s.body),
                count=len(devices),
            )
        kept = False
        for accepted in self._moments.accepted:
            kept = accepted(message, now) or kept
        if outcomes is not None:
            of_topic = s.target.topic is not None
            outcomes.append(TopicOutcome(len(devices), kept) if of_topic else None)
        rule = self._moments.targets[s.target.kind]
        if devices or rule.keeps(devices):
            item = deliveries.own(message)
            if attach is not None:
                attach(item)
            rule.begin(item, devices, now)
        return message

    def _make(self, app: str, source: str, s: Submission, now: Micros) -> Message:
        deliveries = self._deliveries
        keys = deliveries.keys
        message = message_of(
            s,
            key=keys.key(now),
            salt=keys.salt(),
            app=app,
            source=source,
            accepted_at=now,
        )
        deliveries.commits.add_message(message)
        return message

    def find(self, app: str, key: int) -> Item | None:
        """Return an app's message if a delivery of it is open. Raise an error for a message of
        another app, and for a message of the gateway itself, which no publisher can take back."""
        item = self._deliveries.items.get(key)
        if item is not None and (item.message.app != app or item.message.source == GATEWAY):
            raise NotFound("no such message", id=f"{key:016x}")
        return item

    def withdraw(self, item: Item, step: Step, now: Micros, reason: str) -> Withdrawal:
        """Take a message back: as a whole if its decider handles it so, otherwise each delivery of
        which no part has left."""
        as_a_whole = item.decider.withdraw(step, now, reason)
        if as_a_whole is not None:
            return Withdrawal(*as_a_whole)
        # Deliveries of a large fan-out that have not begun never begin: they leave nothing in the
        # log.
        taken_back = self._fanouts.stop(item.message.key, now)
        too_late = 0
        for delivery in list(item.deliveries):
            if self._deliveries.recall(delivery, now):
                self._deliveries.step(delivery, step, now, reason)
                taken_back += 1
            else:
                too_late += 1
        return Withdrawal(taken_back, too_late)
