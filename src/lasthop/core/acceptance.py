"""From a validated submission to an owned message: targets resolved, deliveries begun, all or
nothing.

Doors validate form; this module checks what only the gateway knows (who exists, whose mailbox is
full, which keys were used) and does so for a whole batch before it changes anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from lasthop.clock import Micros
from lasthop.core.delivery import Delivery, Item
from lasthop.core.lifecycle import State, Step
from lasthop.core.mailroom import Mailroom
from lasthop.core.registry import Device
from lasthop.decision.decide import Action, decide
from lasthop.errors import Conflict, Expired, InvalidRequest, QuotaExceeded, Rejected, TooLarge
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


@dataclass(slots=True)
class _Fanout:
    message: Message
    devices: list[Device]
    """Still to come, highest number first."""
    last: int


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

    def known(self, app: str, key: str, digest: bytes, found: KeyRow | None) -> KeyRow | None:
        """The earlier use of an idempotency key, here or as found in the store; a different request
        is a conflict."""
        row = self._recent.get((app, key)) or found
        if row is not None and row.digest != digest:
            raise Conflict("this idempotency key was used for another request", key=key)
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
        self._check_room(reached)
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
            d.session.device.number: d.session.device
            for d in item.deliveries
            if d.state is State.PENDING
        }
        fanout = self._fanouts.get(key)
        if fanout is not None:
            devices.update({d.number: d for d in fanout.devices})
        withdrawal = self._withdraw(key, Step.REPLACE, now, "replaced by its publisher")
        if not devices:
            return withdrawal, None
        return withdrawal, self._own(app, source, submission, devices, now)

    def proceed(self, now: Micros) -> None:
        """Write the next batch of every fan-out that is under way."""
        for key, fanout in list(self._fanouts.items()):
            item = self._room.items[key]
            self._deliver_batch(item, fanout, now)

    def resume_fanout(self, row: FanoutRow, now: Micros) -> None:
        """Go on with a fan-out that a stop interrupted: for those who are subscribed now."""
        item = self._room.items.get(row.message)
        if item is None:
            self._room.journal.commit.fanouts[row.message] = FanoutRow(
                row.message, row.last, row.last, True
            )
            return
        message = item.message
        reached = self._room.registry.reach(message.app, message.target)
        devices = [d for n, d in reached.items() if row.cursor < n <= row.last]
        devices.sort(key=lambda d: -d.number)
        self._fanouts[message.key] = _Fanout(message, devices, row.last)
        item.spreading = True

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

    def _check_room(self, reached: list[Mapping[int, Device]]) -> None:
        limit = self._room.limits.open_per_device
        wanted: dict[int, int] = {}
        for devices in reached:
            if len(devices) == 1:
                for number, device in devices.items():
                    wanted[number] = count = wanted.get(number, 0) + 1
                    if self._room.session(device).open + count > limit:
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
        if s.target.kind is TargetKind.DEVICE and len(devices) == 1:
            item = room.items[message.key] = Item(message)
            for device in devices.values():
                self._begin(item, device, now)
                if not room.session(device).channel:
                    room.journal.when_durable(lambda _: room.keep_in_reserve(item))
        else:
            self._begin_many(message, devices, now)
        return message

    def _begin_many(self, message: Message, devices: Mapping[int, Device], now: Micros) -> None:
        room = self._room
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
        item = room.items[message.key] = Item(message)
        ordered = sorted(devices.values(), key=lambda d: -d.number)
        fanout = _Fanout(message, ordered, ordered[0].number)
        if len(ordered) > room.limits.fanout_batch:
            self._fanouts[message.key] = fanout
            item.spreading = True
        self._deliver_batch(item, fanout, now)

    def _deliver_batch(self, item: Item, fanout: _Fanout, now: Micros) -> None:
        room = self._room
        cursor = fanout.last
        for _ in range(min(room.limits.fanout_batch, len(fanout.devices))):
            device = fanout.devices.pop()
            cursor = device.number
            if room.registry.numbered(cursor) is not device:
                continue
            if room.session(device).open >= room.limits.open_per_device:
                self._suppress(item, device, now)
            else:
                self._begin(item, device, now)
        if item.spreading:
            done = not fanout.devices
            row = FanoutRow(item.message.key, cursor, fanout.last, done)
            room.journal.commit.fanouts[item.message.key] = row
            if done:
                self._stop_spreading(item)

    def _stop_spreading(self, item: Item) -> None:
        item.spreading = False
        del self._fanouts[item.message.key]
        if not item.deliveries:
            self._room.items.pop(item.message.key, None)

    def _begin(self, item: Item, device: Device, now: Micros) -> Delivery:
        room = self._room
        session = room.session(device)
        message = item.message
        delivery = room.open_delivery(item, session, now)
        decision = decide(
            deliver_after=message.deliver_after,
            deliver_before=message.deliver_before,
            in_contact=session.channel != 0,
            has_credit=session.has_credit,
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
        if message.replace_key is not None:
            self._supersede(delivery, message.replace_key, now)
        if decision.action is Action.HOLD and decision.until is not None:
            room.timers.add(decision.until, delivery)
        else:
            session.enqueue(delivery)
            room.touch(session)
        if message.deliver_before is not None:
            room.timers.add(message.deliver_before, delivery)
        return delivery

    def _suppress(self, item: Item, device: Device, now: Micros) -> None:
        room = self._room
        delivery = room.open_delivery(item, room.session(device), now)
        event = room.journal.story(delivery, Kind.ACCEPTED, now, "mailbox full")
        room.journal.append(delivery, event, now)
        room.step(delivery, Step.SUPPRESS, now, "mailbox full")

    def _supersede(self, delivery: Delivery, replace_key: str, now: Micros) -> None:
        session = delivery.session
        if session.replaceable is None:
            session.replaceable = {}
        old = session.replaceable.get(replace_key)
        if old is not None and old.state is State.PENDING:
            self._room.step(old, Step.REPLACE, now, f"replaced under {replace_key!r}")
        session.replaceable[replace_key] = delivery

    def _withdraw(self, key: int, step: Step, now: Micros, reason: str) -> Withdrawal | None:
        item = self._room.items.get(key)
        if item is None:
            return None
        taken_back = 0
        fanout = self._fanouts.get(key)
        if fanout is not None:
            self._stop_spreading(item)
            # Those that were not begun yet never begin: nothing of them is in the log.
            taken_back = len(fanout.devices)
            row = FanoutRow(key, fanout.last, fanout.last, True)
            self._room.journal.commit.fanouts[key] = row
        too_late = 0
        for delivery in list(item.deliveries):
            if delivery.state is State.PENDING:
                self._room.step(delivery, step, now, reason)
                taken_back += 1
            else:
                too_late += 1
        return Withdrawal(taken_back, too_late)
