"""One app's post: what waits for its surrogate, in order, and what the surrogate remembers."""

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
"""Inputs that the surrogate is given together: a round trip to another process costs as much as
some ten inputs."""

MOST_GIVEN_BYTES = 1 << 20


_content_of = maker(Content, {name: name for name in Content.__struct_fields__}, ())


class Failing(StrEnum):
    """What becomes of a message at which the surrogate fails time and again."""

    RELAY = "relay"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurrogateTerms:
    """What a surrogate may take up. Each number says who it protects."""

    attempts: int = 3
    """At one input; then `failing` says what becomes of it."""
    failing: Failing = Failing.RELAY
    queue: int = 10_000
    """Messages that wait for it; then publishers are asked to come back later."""
    state: int = 4 << 20
    """Bytes of its state, which is in memory here and in its worker."""


class Consultation:
    """One message, to or from one device, that waits for the surrogate's word."""

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
        """What waits, of a message to the device; none for a message of the device."""
        self.answers = answers
        self.sent_as = sent_as
        self.attempts = 0
        self.ready = False
        """Its time has come."""
        self.content: Content | None = None
        """What it says, once somebody has asked: its body may be left to the store after that."""
        self.over = False
        """It ended in another way while it waited."""

    def __lt__(self, other: Consultation) -> bool:
        """Whose turn it is."""
        mine, theirs = self.item.message.priority, other.item.message.priority
        return (-mine, self.number) < (-theirs, other.number)

    def row(self, *, done: bool = False) -> ConsultRow:
        """As the store keeps it."""
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
        """As the surrogate sees it."""
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
    """What waits for one app's surrogate, and its state as it counts."""

    def __init__(
        self, app: str, terms: SurrogateTerms, wake: Callable[[SurrogateQueue], None]
    ) -> None:
        self.app = app
        self.terms = terms
        self.state: dict[str, bytes] = {}
        self.state_size = 0
        self.waiting = 0
        """How many have not been heard of, those included that wait for their time."""
        self.flight: deque[Consultation] = deque()
        """Those that the surrogate has been given."""
        self.resting = False
        """Nothing is given until a failure has been slept over."""
        self.fetching: int | None = None
        """The message whose body is being read from the store."""
        self.outcomes: Counter[str] = Counter()
        """Since the start, for people."""
        self._ready: list[Consultation] = []
        self._wake = wake

    def put(self, consultation: Consultation) -> None:
        """Its time has come."""
        heapq.heappush(self._ready, consultation)

    def take(self) -> list[Consultation]:
        """What the surrogate is to be given now; `fetching` says what is missing for more."""
        if self.flight or self.resting or self.fetching is not None:
            return []
        size = 0
        while self._ready and len(self.flight) < MOST_GIVEN:
            consultation = self._ready[0]
            if not consultation.over:
                item = consultation.item
                if not item.resident:
                    self.fetching = None if self.flight else item.stored_key
                    break
                if self.flight and size + item.size > MOST_GIVEN_BYTES:
                    break
                size += item.size
                self.flight.append(consultation)
            heapq.heappop(self._ready)
        return list(self.flight)

    def give_back(self) -> None:
        """The surrogate has not dealt with what it was given."""
        for consultation in self.flight:
            if not consultation.over:
                self.put(consultation)
        self.flight.clear()

    def size_with(self, changes: dict[str, bytes]) -> int:
        """How large the state is with these changes."""
        return size_after(self.state, self.state_size, changes)

    def change(self, changes: dict[str, bytes]) -> None:
        """Change the state."""
        self.state_size = self.size_with(changes)
        apply(self.state, changes)

    def restore(self, name: str, value: bytes) -> None:
        """An entry of the state as the store has it."""
        self.state[name] = value
        self.state_size += entry_size(name, value)

    def woken(self, now: Micros) -> None:
        """The failure has been slept over."""
        self.resting = False
        self._wake(self)
