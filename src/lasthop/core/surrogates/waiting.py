"""One app's queue: what waits for its surrogate, in order, and the surrogate's state."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from lasthop.clock import Micros
from lasthop.core.delivery import Delivery, Item
from lasthop.core.publishing.copying import maker
from lasthop.core.session import Session
from lasthop.store.surrogates import ConsultRow
from lasthop.surrogate.mail import Content, Mail, Way
from lasthop.surrogate.state import apply, entry_size, size_after

MOST_GIVEN = 64
"""The largest number of mails that the surrogate is given together: a round trip to another process
costs as much as some ten mails."""

MOST_GIVEN_BYTES = 1 << 20


_content_of = maker(Content, {name: name for name in Content.__struct_fields__}, ())


class Failing(StrEnum):
    """What becomes of a message at which the surrogate has failed too often."""

    RELAY = "relay"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurrogateTerms:
    """The limits of a surrogate. The description of each says what it protects."""

    attempts: int = 3
    """The largest number of attempts at one mail; after them `failing` says what becomes of it."""
    failing: Failing = Failing.RELAY
    queue: int = 10_000
    """The largest number of messages that wait for the surrogate; beyond this publishers are asked
    to come back later."""
    state: int = 4 << 20
    """The largest size of the surrogate's state in bytes: it is in memory in the gateway and in the
    worker."""


class Consultation:
    """One message, to or from one device, that waits for the surrogate's verdict."""

    __slots__ = (
        "answers",
        "attempts",
        "content",
        "delivery",
        "item",
        "number",
        "over",
        "ready",
        "sent_as",
        "session",
    )

    def __init__(
        self,
        number: int,
        session: Session,
        item: Item,
        *,
        delivery: Delivery | None = None,
        answers: int = 0,
        sent_as: int = 0,
    ) -> None:
        self.number = number
        self.session = session
        self.item = item
        self.delivery = delivery
        """The waiting delivery of a message to the device; None for a message of the device."""
        self.answers = answers
        self.sent_as = sent_as
        self.attempts = 0
        self.ready = False
        """Whether the delay of the message is over, so that the surrogate may get it."""
        self.content: Content | None = None
        """The content that the surrogate was given, kept because the body may be evicted after
        that."""
        self.over = False
        """Whether the message ended in another way while it waited."""

    def __lt__(self, other: Consultation) -> bool:
        """Order two consultations by priority, then by number."""
        mine, theirs = self.item.message.priority, other.item.message.priority
        return (-mine, self.number) < (-theirs, other.number)

    def row(self, *, done: bool = False) -> ConsultRow:
        """Return the consultation as the store keeps it."""
        return ConsultRow(
            self.number,
            self.session.device.app,
            self.session.device.number,
            self.item.message.key,
            self.delivery is None,
            self.answers,
            self.sent_as,
            self.attempts,
            done,
        )

    def mail(self, now: Micros) -> Mail:
        """Return the message as the surrogate gets it."""
        m = self.item.message
        self.content = _content_of(m)
        device = self.session.device
        return Mail(
            number=self.number,
            way=Way.TO_DEVICE if self.delivery is not None else Way.FROM_DEVICE,
            device=device.name,
            key=m.key,
            content=self.content,
            at=now,
            online=self.session.greeted,
            source=m.source,
            target=str(m.target),
            user=device.record.user,
            queue=m.queue,
            priority=m.priority,
            deliver_before=m.deliver_before,
            reply_before=m.reply_before,
            answers=self.answers,
            attempt=self.attempts + 1,
        )


class SurrogateQueue:
    """The consultations that wait for one app's surrogate, and the surrogate's durable state."""

    def __init__(
        self, app: str, terms: SurrogateTerms, wake: Callable[[SurrogateQueue], None]
    ) -> None:
        self.app = app
        self.terms = terms
        self.state: dict[str, bytes] = {}
        self.state_size = 0
        self.waiting = 0
        """Number of consultations without a verdict, including those whose delay is not over."""
        self.flight: deque[Consultation] = deque()
        """The consultations that the surrogate has been given."""
        self.resting = False
        """Whether the surrogate is given nothing until the pause after a failure is over."""
        self.fetching: int | None = None
        """The key of the message whose body is being read from the store; None if there is none."""
        self.outcomes: Counter[str] = Counter()
        """Number of messages by outcome since the start, for the metrics."""
        self._ready: list[Consultation] = []
        self._wake = wake

    def put(self, consultation: Consultation) -> None:
        """Queue a consultation whose delay is over."""
        heapq.heappush(self._ready, consultation)

    def take(self) -> list[Consultation]:
        """Return the consultations that the surrogate is to be given now; `fetching` is set if the
        next one lacks its body."""
        if self.flight or self.resting or self.fetching is not None:
            return []
        size = 0
        while self._ready and len(self.flight) < MOST_GIVEN:
            consultation = self._ready[0]
            if not consultation.over:
                item = consultation.item
                if not item.resident:
                    # What is in memory goes first; the missing body is read when nothing is with
                    # the surrogate.
                    self.fetching = None if self.flight else item.stored_key
                    break
                if self.flight and size + item.size > MOST_GIVEN_BYTES:
                    break
                size += item.size
                self.flight.append(consultation)
            heapq.heappop(self._ready)
        return list(self.flight)

    def give_back(self) -> None:
        """Queue the consultations again that the surrogate was given and did not finish."""
        for consultation in self.flight:
            if not consultation.over:
                self.put(consultation)
        self.flight.clear()

    def size_with(self, changes: dict[str, bytes]) -> int:
        """Return the size of the state with these changes, in bytes."""
        return size_after(self.state, self.state_size, changes)

    def change(self, changes: dict[str, bytes]) -> None:
        """Apply changes to the surrogate's state."""
        self.state_size = self.size_with(changes)
        apply(self.state, changes)

    def restore(self, name: str, value: bytes) -> None:
        """Add an entry of the state that the store has."""
        self.state[name] = value
        self.state_size += entry_size(name, value)

    def woken(self, now: Micros) -> None:
        """End the pause after a failure."""
        self.resting = False
        self._wake(self)
