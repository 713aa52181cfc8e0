"""From a validated submission to an owned message: targets resolved, deliveries begun, all or
nothing.

Doors validate form; this module checks what only the gateway knows (who exists, whose mailbox is
full, which keys were used) and does so for a whole batch before it changes anything.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from lasthop.clock import Micros
from lasthop.core.delivery import Delivery, Item
from lasthop.core.journal import Journal
from lasthop.core.lifecycle import Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.registry import Device
from lasthop.decision.decide import decide
from lasthop.errors import (
    Conflict,
    Expired,
    InvalidRequest,
    NotFound,
    QuotaExceeded,
    Rejected,
    TooLarge,
)
from lasthop.events import Kind
from lasthop.message import (
    DEFAULT_CONTENT_TYPE,
    DEFAULT_PRIORITY,
    DeliveryMethod,
    Handling,
    Message,
    Reliability,
    Target,
    TargetKind,
    format_id,
    successor,
)
from lasthop.store.commit import FanoutRow, KeyRow

RECENT_KEYS = 100_000
"""Idempotency keys remembered here; older ones are looked up in the store before a submission comes
in. The number must exceed what can be accepted while such a look-up is under way."""


class Submission(msgspec.Struct, kw_only=True):
    """A message that somebody wants sent, valid in form. Times are absolute."""

    target: Target
    body: bytes = b""
    content_type: str = DEFAULT_CONTENT_TYPE
    title: str | None = None
    priority: int = DEFAULT_PRIORITY
    rank: float = 0.0
    deliver_after: Micros | None = None
    deliver_before: Micros | None = None
    delay_tolerance: Micros | None = None
    reliability: Reliability = Reliability.EXACTLY_ONCE
    method: DeliveryMethod = DeliveryMethod.NOT_SPECIFIED
    handling: Handling = Handling.FOREGROUND
    queue: str | None = None
    replace_key: str | None = None
    in_reply_to: int | None = None
    correlation: int | None = None
    reply_before: Micros | None = None
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Idempotency:
    """A publisher's key for a request, the request's digest, and what the store knows of the
    key."""

    key: str
    digest: bytes
    found: KeyRow | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a publisher gets once it is durable: ids in the order of the submissions.

    When the idempotency key was known nothing new is accepted; `repeated` has the keys of the
    messages that it stands for, whose ids are to be read from the store.
    """

    ids: list[str]
    repeated: list[int] | None = None


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """The outcome of a cancellation or replacement, per delivery; each is one or the other."""

    taken_back: int
    too_late: int


Lane: TypeAlias = tuple[str, str, str | None, int]
"""App, source, queue and priority: for one device, what is kept in order."""


class _Fanout:
    """A message for many whose deliveries are still being begun."""

    __slots__ = ("devices", "item", "lane", "last", "stored")

    def __init__(self, item: Item, devices: list[Device], last: int, *, stored: bool) -> None:
        self.item = item
        self.lane = lane_of(item.message)
        self.devices = devices
        """Still to come, highest number first."""
        self.last = last
        self.stored = stored
        """Whether the store knows of it: most are done in one commit."""
        item.spreading = True

    def note(self, journal: Journal, cursor: int) -> None:
        """Write how far it has come, if that is ever to be known."""
        done = not self.devices
        if self.stored or not done:
            key = self.item.message.key
            journal.commit.fanouts[key] = FanoutRow(key, cursor, self.last, done)
            self.stored = True

    def awaits(self, devices: Mapping[int, Device]) -> bool:
        """Whether one of these devices is still to have its delivery."""
        if len(devices) > 1:
            return True  # Probably, and waiting without need does no harm.
        coming = self.devices
        for number in devices:
            at = bisect_left(coming, -number, key=lambda device: -device.number)
            if at < len(coming) and coming[at].number == number:
                return True
        return False


class Acceptance:
    """Takes messages in, and takes them back while that is possible."""

    def __init__(self, room: Mailroom) -> None:
        self._room = room
        self._recent: dict[tuple[str, str], KeyRow] = {}
        self._fanouts: dict[int, _Fanout] = {}

    def remember(self, row: KeyRow) -> None:
        """An idempotency key that was used."""
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
        """Own a batch, and never twice under one idempotency key."""
        if not submissions:
            raise InvalidRequest("there is nothing to publish")
        row = self._known(app, once) if once is not None else None
        if row is not None:
            keys = [row.first]
            while len(keys) < row.count:
                keys.append(successor(keys[-1]))
            return Receipt([], keys)
        messages = self.accept(app, source, submissions, now)
        if once is not None:
            row = KeyRow(app, once.key, once.digest, messages[0].key, len(messages), now)
            self._room.journal.commit.keys.append(row)
            self.remember(row)
        return Receipt([format_id(m.key, m.salt) for m in messages])

    def _known(self, app: str, once: Idempotency) -> KeyRow | None:
        """The earlier use of an idempotency key, here or as found in the store; a different request
        is a conflict."""
        row = self._recent.get((app, once.key)) or once.found
        if row is not None and row.digest != once.digest:
            raise Conflict("this idempotency key was used for another request", key=once.key)
        return row

    def accept(
        self, app: str, source: str, submissions: Sequence[Submission], now: Micros
    ) -> list[Message]:
        """Own a batch: every submission or none. A refusal of one among several names it."""
        reached: list[Mapping[int, Device]] = []
        try:
            for submission in submissions:
                reached.append(self._check(app, submission, now))
        except Rejected as error:
            if len(submissions) > 1:
                error.fields["item"] = len(reached)
            raise
        self._check_room(submissions, reached)
        return [
            self._own(app, source, submission, devices, now)
            for submission, devices in zip(submissions, reached, strict=True)
        ]

    def cancel(self, key: int, now: Micros) -> Withdrawal | None:
        """Take a message back from everyone who has not been sent it; `None` when nothing of it is
        open."""
        return self._withdraw(key, Step.CANCEL, now, "cancelled by its publisher")

    def replace(
        self, key: int, app: str, source: str, submission: Submission, now: Micros
    ) -> tuple[Withdrawal | None, Message | None]:
        """Put a new message in the place of an old one, for the devices that have not been sent the
        old one."""
        item = self._room.items.get(key)
        if item is None:
            return None, None
        self._check(app, submission, now)
        devices = {
            d.session.device.number: d.session.device for d in item.deliveries if d.revocable
        }
        fanout = self._fanouts.get(key)
        if fanout is not None:
            devices.update({d.number: d for d in fanout.devices})
        withdrawal = self._withdraw(key, Step.REPLACE, now, "replaced by its publisher")
        if not devices:
            return withdrawal, None
        return withdrawal, self._own(app, source, submission, devices, now)

    def proceed(self, now: Micros) -> None:
        """Write the next batch of every fan-out that is under way.

        In each lane the oldest goes first, and the next one only when that is done: so nobody gets
        a later message of a source before an earlier one.
        """
        if not self._fanouts:
            return
        left: dict[Lane, int] = {}
        for fanout in list(self._fanouts.values()):
            most = left.get(fanout.lane, self._room.limits.fanout_batch)
            if most > 0:
                used = self._deliver_batch(fanout, most, now)
                left[fanout.lane] = most - used if not fanout.devices else 0
        # The next batch follows on this one's commit, so that must not dawdle.
        self._room.journal.hurry()

    def resume_fanout(self, row: FanoutRow) -> None:
        """Go on with a fan-out that a stop interrupted: for those who are subscribed now."""
        item = self._room.items[row.message]
        message = item.message
        try:
            reached = self._room.registry.reach(message.app, message.target)
        except NotFound:
            reached = {}  # Everyone who was meant has been removed since.
        devices = [d for n, d in reached.items() if row.cursor < n <= row.last]
        devices.sort(key=lambda d: -d.number)
        self._fanouts[message.key] = _Fanout(item, devices, row.last, stored=True)
        self._room.journal.hurry()

    def _check(self, app: str, submission: Submission, now: Micros) -> Mapping[int, Device]:
        limits = self._room.limits
        if len(submission.body) > limits.body:
            raise TooLarge("body too large", size=len(submission.body), limit=limits.body)
        before, after = submission.deliver_before, submission.deliver_after
        if before is not None and before <= now:
            raise Expired("deliver_before has passed already", deliver_before=before)
        if before is not None and after is not None and after >= before:
            raise InvalidRequest(
                "deliver_after must come before deliver_before",
                deliver_after=after,
                deliver_before=before,
            )
        if submission.target.kind is TargetKind.PUBLISHER:
            return {}
        return self._room.registry.reach(app, submission.target)

    def _check_room(
        self, submissions: Sequence[Submission], reached: list[Mapping[int, Device]]
    ) -> None:
        """A sender to one device is told when its mailbox is full; for one among many the delivery
        is suppressed."""
        limit = self._room.limits.open_per_device
        wanted: dict[int, int] = {}
        for submission, devices in zip(submissions, reached, strict=True):
            if submission.target.kind is TargetKind.DEVICE:
                for number, device in devices.items():
                    wanted[number] = count = wanted.get(number, 0) + 1
                    if len(self._room.session(device).mailbox) + count > limit:
                        raise QuotaExceeded(
                            "mailbox full", retry_after=60, device=device.name, limit=limit
                        )

    def _own(
        self,
        app: str,
        source: str,
        s: Submission,
        devices: Mapping[int, Device],
        now: Micros,
    ) -> Message:
        room = self._room
        message = Message(
            room.keys.key(now),
            room.keys.salt(),
            app,
            source,
            s.target,
            now,
            s.body,
            s.content_type,
            s.title,
            s.priority,
            s.rank,
            s.deliver_after,
            s.deliver_before,
            s.delay_tolerance,
            s.reliability,
            s.method,
            s.handling,
            s.queue,
            s.replace_key,
            s.in_reply_to,
            s.correlation,
            s.reply_before,
            s.headers,
        )
        room.journal.add_message(message)
        if s.target.kind is TargetKind.DEVICE and len(devices) == 1 and not self._fanouts:
            item = room.own(message)
            for device in devices.values():
                self._begin(item, device, now)
        else:
            self._begin_many(message, devices, now)
        return message

    def _begin_many(self, message: Message, devices: Mapping[int, Device], now: Micros) -> None:
        room = self._room
        if message.target.kind is not TargetKind.DEVICE:
            room.journal.tell(
                Kind.PUBLISHED,
                now,
                app=message.app,
                msg=message.key,
                source=message.source,
                target=str(message.target),
                size=len(message.body),
                count=len(devices),
            )
        if not devices:
            return
        item = room.own(message)
        ordered = sorted(devices.values(), key=lambda d: -d.number)
        fanout = _Fanout(item, ordered, ordered[0].number, stored=False)
        behind = any(f.lane == fanout.lane and f.awaits(devices) for f in self._fanouts.values())
        self._fanouts[message.key] = fanout
        if behind:
            fanout.note(room.journal, 0)
        else:
            self._deliver_batch(fanout, room.limits.fanout_batch, now)

    def _deliver_batch(self, fanout: _Fanout, most: int, now: Micros) -> int:
        """Begin up to so many deliveries; returns how many there were to begin."""
        room = self._room
        item = fanout.item
        count = min(most, len(fanout.devices))
        cursor = fanout.last
        for _ in range(count):
            device = fanout.devices.pop()
            cursor = device.number
            if room.registry.numbered(cursor) is device:
                self._begin(item, device, now)
        if fanout.devices:
            fanout.note(room.journal, cursor)
        else:
            self._stop_spreading(fanout)
        return count

    def _stop_spreading(self, fanout: _Fanout) -> None:
        """Everyone has theirs, or shall not have it any more."""
        item = fanout.item
        item.spreading = False
        fanout.devices.clear()
        fanout.note(self._room.journal, fanout.last)
        del self._fanouts[item.message.key]
        self._room.release(item)

    def _begin(self, item: Item, device: Device, now: Micros) -> None:
        room = self._room
        session = room.session(device)
        message = item.message
        full = len(session.mailbox) >= room.limits.open_per_device
        delivery = room.open_delivery(item, session, now)
        decision = decide(
            deliver_after=message.deliver_after,
            deliver_before=message.deliver_before,
            in_contact=session.greeted,
            has_credit=session.has_credit(),
            now=now,
        )
        event = room.journal.story(delivery, Kind.ACCEPTED, now, decision.reason)
        event.source = message.source
        event.target = str(message.target) if message.target.kind is not TargetKind.DEVICE else ""
        event.size = item.size
        event.rank = message.rank
        event.priority = message.priority
        event.after = message.deliver_after or 0
        event.before = message.deliver_before or 0
        event.reliability = message.reliability
        room.journal.append(delivery, event, now)
        if full:
            room.step(delivery, Step.SUPPRESS, now, "mailbox full")
            return
        if message.replace_key is not None:
            self._supersede(delivery, message.replace_key, now)
        if decision.until is not None:
            room.timers.add(decision.until, delivery)
        else:
            session.enqueue(delivery)
            room.touch(session)
        if message.deliver_before is not None:
            room.timers.add(message.deliver_before, delivery)

    def _supersede(self, delivery: Delivery, replace_key: str, now: Micros) -> None:
        old = delivery.session.replace(replace_key, delivery)
        if old is not None:
            self._room.step(old, Step.REPLACE, now, f"replaced under {replace_key!r}")

    def _withdraw(self, key: int, step: Step, now: Micros, reason: str) -> Withdrawal | None:
        item = self._room.items.get(key)
        if item is None:
            return None
        taken_back = 0
        fanout = self._fanouts.get(key)
        if fanout is not None:
            # Those that were not begun yet never begin: nothing of them is in the log.
            taken_back = len(fanout.devices)
            self._stop_spreading(fanout)
        too_late = 0
        for delivery in list(item.deliveries):
            if delivery.revocable:
                self._room.step(delivery, step, now, reason)
                taken_back += 1
            else:
                too_late += 1
        return Withdrawal(taken_back, too_late)


def lane_of(message: Message) -> Lane:
    """What the message is in order with."""
    return message.app, message.source, message.queue, message.priority
