"""Result notifications: telling an initiator the outcome of a push, until it has confirmed.

A notification is stored in the commit in which the outcome became final, and leaves after it. What
fails is tried again, later and later, until the initiator has answered or the time is up; all of it
survives a restart. An initiator may get the same outcome twice (push-id and address identify it),
never two different ones.

When a destination does not answer at all, all its notifications wait, and one attempt at a time
finds out whether it is back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from msgspec.structs import replace

from lasthop.clock import DAY, MINUTE, SECOND, Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.effects import Notify
from lasthop.core.timers import Timers
from lasthop.errors import QuotaExceeded
from lasthop.events import Kind
from lasthop.message import DeliveryMethod, key_time
from lasthop.store.pushes import NotificationRow, PushChanges, PushRow
from lasthop.wire.pap.answers import AnswerVerdict, PapAnswer
from lasthop.wire.pap.codes import CODES, MessageState
from lasthop.wire.pap.documents import Document, QualityOfService, ResultNotificationMessage
from lasthop.wire.pap.outcomes import PushReport
from lasthop.wire.pap.versions import SUPPORTED, UNDECLARED, Version

PRODUCT = "lasthop"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationPatience:
    """How long and how often the gateway tries to notify initiators."""

    first_pause: Micros = 5 * SECOND
    """The pause before the second attempt; every further pause is twice as long as the one
    before."""
    longest_pause: Micros = 30 * MINUTE
    """The limit of the pauses. Each pause is shortened by up to a half at random, so that
    notifications which failed together are not repeated together."""
    give_up_after: Micros = DAY
    """How long a notification is tried; an initiator that was away for longer asks for the
    status."""
    response_wait: Micros = 30 * SECOND
    """How long after a delivery the gateway waits for the answer of the device."""
    window: int = 8
    """The largest number of notifications under way to one destination."""
    in_flight: int = 64
    """The largest number of notifications under way to all destinations: each holds a connection
    and a body."""
    waiting: int = 100_000
    """The largest number of notifications that wait for one destination, at some 600 bytes each.
    Beyond this its initiator's pushes are refused until it accepts notifications."""


class Notification:
    """One outcome of which an initiator is to be notified."""

    __slots__ = ("destination", "push", "queued", "row")

    def __init__(self, row: NotificationRow, push: PushRow, destination: Destination) -> None:
        self.row = row
        self.push = push
        self.destination = destination
        self.queued = False
        """Whether the notification is in its destination's queue, or under way."""

    @property
    def key(self) -> tuple[int, int]:
        return self.row.message, self.row.place


class Destination:
    """The place that notifications are posted to: one scheme, host and port."""

    __slots__ = ("closed_until", "count", "failures", "in_flight", "queue")

    def __init__(self) -> None:
        self.queue: deque[Notification] = deque()
        self.count = 0
        """Number of notifications that the destination has not confirmed."""
        self.in_flight = 0
        self.failures = 0
        """Number of attempts in a row that got no answer."""
        self.closed_until: Micros = 0


class Notifications:
    """All notifications that initiators have not confirmed."""

    def __init__(
        self,
        deliveries: Deliveries,
        patience: NotificationPatience,
        *,
        random64: Callable[[], int],
        sender: str,
    ) -> None:
        self._deliveries = deliveries
        self._patience = patience
        self._random64 = random64
        self._sender = sender
        self._pending: dict[tuple[int, int], Notification] = {}
        self._destinations: dict[str, Destination] = {}
        self._ready: dict[Destination, None] = {}
        """Destinations whose queue waits only because of the limit for all destinations."""
        self._timers: Timers[Notification | Destination] = Timers()
        self._in_flight = 0
        self._awaited: dict[tuple[int, int], Callable[[int], None]] = {}
        """By message and device, the function to call when the device answers."""

    def replied(self, message: int, device: int, reply: int) -> None:
        """Pass a device's answer to the notification that waits for it, if there is one."""
        heard = self._awaited.get((message, device))
        if heard is not None:
            heard(reply)

    def __len__(self) -> int:
        return len(self._pending)

    def check_room(self, url: str) -> None:
        """Raise an error if too many notifications wait for a destination."""
        limit = self._patience.waiting
        known = self._destinations.get(_origin(url)) if url else None
        if known is not None and known.count >= limit:
            raise QuotaExceeded(
                "too many results wait for this initiator", retry_after=60, limit=limit
            )

    def add(
        self,
        push: PushRow,
        place: int,
        report: PushReport,
        now: Micros,
        *,
        reply: int = 0,
        awaited_from: int = 0,
    ) -> None:
        """Store a notification in the open commit, and send it when that is durable.

        The device's answer, which goes along, may still be on its way: then the notification waits
        for it.
        """
        wait = self._patience.response_wait if awaited_from and not reply else 0
        row = NotificationRow(
            push.message,
            place,
            report.state,
            report.code,
            report.event_time or 0,
            report.method or "",
            now,
            now + wait,
            0,
            reply,
            awaited_from if wait else 0,
        )
        notification = self._enter(row, push)
        self._write(notification, row)
        self._deliveries.commits.when_durable(partial(self._due, notification))

    def restore(self, rows: Iterable[NotificationRow], pushes: Mapping[int, PushRow]) -> None:
        """Continue with the notifications that the store has."""
        for row in rows:
            if row.message in pushes:
                notification = self._enter(row, pushes[row.message])
                self._timers.add(row.due, notification)

    def _enter(self, row: NotificationRow, push: PushRow) -> Notification:
        origin = _origin(push.notify_to)
        destination = self._destinations.get(origin)
        if destination is None:
            destination = self._destinations[origin] = Destination()
        destination.count += 1
        notification = Notification(row, push, destination)
        self._pending[notification.key] = notification
        if row.awaited_from:
            heard = partial(self._replied, notification)
            self._awaited[row.message, row.awaited_from] = heard
        return notification

    def _replied(self, notification: Notification, reply: int) -> None:
        """Send a notification together with the device's answer, which has come."""
        if notification.queued or notification.row.reply:
            return
        self._forget_wait(notification.row)
        row = notification.row
        self._write(notification, replace(row, reply=reply, due=row.first_at, awaited_from=0))
        self._deliveries.commits.when_durable(partial(self._due, notification))

    def _forget_wait(self, row: NotificationRow) -> None:
        self._awaited.pop((row.message, row.awaited_from), None)

    def next_due(self) -> Micros | None:
        """Return when `wake` has to be called next; None if never."""
        return self._timers.next_due()

    def wake(self, now: Micros) -> None:
        """Send the notifications that are due, and try destinations again whose pause is over."""
        for due in self._timers.due(now):
            if isinstance(due, Notification):
                self._due(due, now)
            elif now >= due.closed_until:
                self._pump(due, now)

    def _due(self, notification: Notification, now: Micros) -> None:
        if notification.queued or self._pending.get(notification.key) is not notification:
            return
        if notification.row.due > now:
            self._timers.add(notification.row.due, notification)
            return
        self._forget_wait(notification.row)
        notification.queued = True
        notification.destination.queue.append(notification)
        self._pump(notification.destination, now)

    def _pump(self, destination: Destination, now: Micros) -> None:
        """Send a destination the notifications that may be sent now."""
        if now < destination.closed_until:
            return  # A timer tries again at that time.
        # One attempt finds out whether a destination that did not answer is back.
        window = 1 if destination.failures else self._patience.window
        while destination.queue and destination.in_flight < window:
            if self._in_flight >= self._patience.in_flight:
                self._ready[destination] = None
                return
            notification = destination.queue.popleft()
            if now >= notification.row.first_at + self._patience.give_up_after:
                self._end(notification, Kind.NOTIFICATION_GIVEN_UP, "no answer in time", now)
                continue
            destination.in_flight += 1
            self._in_flight += 1
            self._deliveries.effects.append(self._effect(notification))
        self._ready.pop(destination, None)

    def _effect(self, notification: Notification) -> Notify:
        row, push = notification.row, notification.push
        message = ResultNotificationMessage(
            push_id=push.push_id,
            address=push.addresses[row.place].text,
            state=MessageState(row.state),
            code=row.code,
            desc=CODES[row.code].name,
            sender_name=self._sender,
            received_time=key_time(row.message),
            event_time=row.event_time or None,
            quality=QualityOfService(method=DeliveryMethod(row.method)) if row.method else None,
        )
        version = Version(push.version) if push.version else UNDECLARED
        document = Document(message, version, SUPPORTED, PRODUCT)
        return Notify(row.message, row.place, push.notify_to, document, row.reply)

    def answered(self, message: int, place: int, answer: PapAnswer, now: Micros) -> None:
        """Handle the initiator's answer to a `Notify` effect."""
        notification = self._pending[message, place]
        destination = notification.destination
        destination.in_flight -= 1
        self._in_flight -= 1
        unreachable = answer.verdict is AnswerVerdict.UNREACHABLE
        destination.failures = destination.failures + 1 if unreachable else 0
        if answer.verdict is AnswerVerdict.HEARD:
            self._end(notification, Kind.NOTIFIED, answer.reason, now)
        elif answer.verdict is AnswerVerdict.REFUSED:
            self._end(notification, Kind.NOTIFICATION_GIVEN_UP, answer.reason, now)
        else:
            self._failed(notification, answer, now)
        self._pump(destination, now)
        for other in list(self._ready):
            if self._in_flight >= self._patience.in_flight:
                break
            self._pump(other, now)

    def _failed(self, notification: Notification, answer: PapAnswer, now: Micros) -> None:
        row = notification.row
        destination = notification.destination
        if now >= row.first_at + self._patience.give_up_after:
            self._end(notification, Kind.NOTIFICATION_GIVEN_UP, answer.reason, now)
            return
        attempts = row.attempts + 1
        # The destination did not answer at all: everything for it waits, this one first.
        if answer.verdict is AnswerVerdict.UNREACHABLE:
            due = destination.closed_until = now + self._pause(destination.failures)
            destination.queue.appendleft(notification)
            self._timers.add(due, destination)
        else:
            due = now + self._pause(attempts)
            notification.queued = False
            self._timers.add(due, notification)
        self._write(notification, replace(row, attempts=attempts, due=due, awaited_from=0))
        self._tell(notification, Kind.NOTIFICATION_FAILED, answer.reason, now)

    def _pause(self, failures: int) -> Micros:
        patience = self._patience
        longest = min(patience.first_pause << min(failures - 1, 20), patience.longest_pause)
        return longest - self._random64() % (longest // 2 + 1)

    def _end(self, notification: Notification, kind: Kind, reason: str, now: Micros) -> None:
        notification.destination.count -= 1
        del self._pending[notification.key]
        self._write(notification, replace(notification.row, done=True))
        self._tell(notification, kind, reason, now)
        destination = notification.destination
        if not destination.count:
            del self._destinations[_origin(notification.push.notify_to)]
            self._ready.pop(destination, None)

    def _write(self, notification: Notification, row: NotificationRow) -> None:
        notification.row = row
        self._deliveries.commits.open.of(PushChanges).notifications[notification.key] = row

    def _tell(self, notification: Notification, kind: Kind, reason: str, now: Micros) -> None:
        row, push = notification.row, notification.push
        self._deliveries.commits.record(
            kind,
            now,
            app=push.app,
            msg=row.message,
            target=push.addresses[row.place].text,
            state=row.state,
            attempt=row.attempts + (kind is Kind.NOTIFIED),
            reason=reason,
        )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower()
