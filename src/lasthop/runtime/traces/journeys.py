"""Turns the events of deliveries into spans: one for each delivery, with its waits, transmissions
and handling as parts.

The id of a span is computed from its content: the same events make the same spans, so that events
that are read again after a crash make no second trace.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from lasthop.clock import Micros
from lasthop.core.lifecycle import State
from lasthop.events import Event, Kind
from lasthop.message import key_time
from lasthop.runtime.traces.spans import Attributes, Span, SpanMoment
from lasthop.wire import tracecontext
from lasthop.wire.tracecontext import TraceContext

MOST_OPEN = 20_000
"""The largest number of deliveries that are remembered until they end, at some 2 kB each. If a
delivery was forgotten, because its device stayed away while many messages were sent, its start is
known only from the message's key."""

MOST_STEPS = 128
"""The largest number of steps that are recorded for one delivery: a link that keeps breaking would
make steps without end."""

ENDS = frozenset(state.name.lower() for state in State if state.final)
STORY = ENDS | {
    Kind.ACCEPTED,
    Kind.HELD,
    Kind.CONSULTED,
    Kind.RELEASED,
    Kind.TRANSMITTED,
    Kind.RECEIVED,
    Kind.REQUEUED,
    Kind.PARKED,
}
FAILURES = frozenset({Kind.EXPIRED, Kind.ABORTED, Kind.TIMED_OUT, Kind.UNDELIVERABLE})
"""The final states that are failures. A message that was cancelled, or was not worth sending, is
not a failure."""

_PARTS = {
    Kind.ACCEPTED: "wait",
    Kind.REQUEUED: "wait",
    Kind.TRANSMITTED: "transmit",
    Kind.RECEIVED: "handle",
}
"""The name of the part that begins with an event of this kind."""
_BOUNDARIES = ENDS | _PARTS.keys() | {Kind.RELEASED, Kind.PARKED}
"""The kinds of events at which a part ends."""

_STEP_FACTS = ("reason", "link", "network", "policy", "attempt", "bytes", "cost")


class Journey:
    """The steps of one delivery, in progress or ended."""

    __slots__ = ("context", "parent", "steps")

    def __init__(self, context: TraceContext, parent: bytes) -> None:
        self.context = context
        """The ids of the trace and of the span that stands for the whole delivery."""
        self.parent = parent
        self.steps: list[Event] = []

    @property
    def size(self) -> int:
        """The number of spans that are made from this delivery: one for the delivery, and one for
        each of its parts."""
        return 1 + sum(step.kind in _PARTS for step in self.steps)


class Journeys:
    """Collects the events of deliveries, and returns each delivery when it has ended."""

    def __init__(
        self,
        *,
        sample: float = 1.0,
        most_open: int = MOST_OPEN,
        earlier: Callable[[int], Event | None] = lambda offset: None,
    ) -> None:
        """`sample` is the share of messages without a trace that is traced. `earlier` finds an
        event by its offset, or returns None."""
        self._threshold = round(sample * (1 << 64))
        self._most_open = most_open
        self._earlier = earlier
        self._open: dict[tuple[int, str], Journey | None] = {}
        """The journeys by message and device, oldest first; None for deliveries that are not
        traced."""
        self.forgotten = 0
        """The number of traced deliveries that were forgotten before they ended, because more than
        `MOST_OPEN` were open."""

    def __len__(self) -> int:
        return len(self._open)

    def note(self, event: Event) -> Journey | None:
        """Note an event; return the journey that it ends, if the delivery is traced."""
        if event.kind not in STORY:
            return None
        place = event.msg, event.dev
        if event.kind == Kind.ACCEPTED:
            journey = self._open[place] = self._begin(event)
            self._make_room()
        elif place in self._open:
            journey = self._open[place]
        else:
            journey = self._open[place] = self._recalled(event)
            self._make_room()
        ends = event.kind in ENDS
        if journey is not None and (ends or len(journey.steps) < MOST_STEPS):
            journey.steps.append(event)
        if not ends:
            return None
        del self._open[place]
        return journey

    def _make_room(self) -> None:
        if len(self._open) > self._most_open:
            self.forgotten += self._open.pop(next(iter(self._open))) is not None

    def _begin(self, event: Event) -> Journey | None:
        span = _digest(8, event.gw, event.msg, event.dev)
        given = tracecontext.parse(event.trace) if event.trace else None
        if given is not None:
            if not given.sampled:
                return None
            return Journey(TraceContext(given.trace, span, True), given.span)
        # All deliveries of a message are one trace, whose id begins with the message's key.
        chosen = _digest(8, event.gw, event.msg)
        if int.from_bytes(chosen) >= self._threshold:
            return None
        return Journey(TraceContext(event.msg.to_bytes(8) + chosen, span, True), b"")

    def _recalled(self, event: Event) -> Journey | None:
        """Return a journey that began before the start or was dropped, from the earlier events that
        can still be found; None if it is not traced."""
        steps: list[Event] = []
        offset = event.prev
        while offset >= 0 and len(steps) < MOST_STEPS and (found := self._earlier(offset)):
            steps.append(found)
            offset = found.prev
        steps.reverse()
        journey = self._begin(steps[0] if steps else event)
        if journey is not None:
            journey.steps = steps
        return journey


def spans_of(journey: Journey) -> list[Span]:
    """Return the spans of an ended journey: the delivery, then its parts."""
    steps = journey.steps
    end = steps[-1]
    trace, span, _ = journey.context
    whole = steps[0].kind == Kind.ACCEPTED
    start = steps[0].t if whole else min(steps[0].t, key_time(end.msg))
    delivery = Span(
        trace=trace,
        id=span,
        parent=journey.parent,
        name="deliver",
        start=start,
        end=max(start, end.t),
        consumer=bool(journey.parent),
        attributes=_attributes(steps, end),
        moments=[SpanMoment(step.t, step.kind, _facts(step)) for step in steps],
        failure=end.reason or end.kind if end.kind in FAILURES else None,
    )
    if not whole:
        delivery.attributes["lasthop.partial"] = True
    return [delivery, *_parts(delivery, steps)]


def _parts(delivery: Span, steps: list[Event]) -> list[Span]:
    """Return the parts of a delivery: waits, transmissions and handling."""
    parts: list[Span] = []
    begun: Event | None = None
    for step in steps:
        if step.kind not in _BOUNDARIES:
            continue
        if begun is not None:
            parts.append(_part(delivery, begun, step.t, len(parts)))
        begun = step if step.kind in _PARTS else None
    return parts


def _part(delivery: Span, begun: Event, end: Micros, number: int) -> Span:
    return Span(
        trace=delivery.trace,
        id=_digest(8, delivery.id.hex(), number),
        parent=delivery.id,
        name=_PARTS[Kind(begun.kind)],
        start=begun.t,
        end=max(begun.t, end),
        attributes=_facts(begun),
    )


def _attributes(steps: list[Event], end: Event) -> Attributes:
    first = steps[0]
    found: Attributes = {
        "messaging.system": "lasthop",
        "messaging.message.id": f"{end.msg:016x}",
        "messaging.destination.name": first.target or f"device:{end.dev}",
        "messaging.message.body.size": first.size,
        "lasthop.app": end.app,
        "lasthop.device": end.dev,
        "lasthop.state": end.kind,
        "lasthop.attempts": sum(step.kind == Kind.TRANSMITTED for step in steps),
        "lasthop.bytes": sum(step.bytes for step in steps if step.kind == Kind.TRANSMITTED),
    }
    if first.topic:
        found["lasthop.topic"] = first.topic
    if first.priority >= 0:
        found["lasthop.priority"] = first.priority
    return found | _facts(end)


def _facts(step: Event) -> Attributes:
    """Return the facts of a step as attributes of a span."""
    return {f"lasthop.{name}": value for name in _STEP_FACTS if (value := getattr(step, name))}


def _digest(size: int, *of: object) -> bytes:
    """Return an id that is always the same for the same arguments, and never all zeros."""
    found = blake2b("/".join(map(str, of)).encode(), digest_size=size).digest()
    return found if any(found) else b"\x01" * size
