"""The history of one delivery: its events from acceptance to its end, and how people read them.

The store knows a delivery's newest event, and every event names the one before it; so the history
is found by as many look-ups as it has events, however long the log is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from lasthop.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Micros
from lasthop.errors import StoreBroken
from lasthop.events import Event, Kind


def story(find: Callable[[int], Event | None], last_event: int) -> list[Event]:
    """Return the events of the delivery whose newest event is `last_event`, oldest first.

    Where the log was cut off, the history starts with the oldest event that is left, which has a
    `prev`.
    """
    events: list[Event] = []
    offset = last_event
    while offset >= 0 and (event := find(offset)) is not None:
        if events and not _continues(event, events[-1]):
            raise StoreBroken(
                "an event names another delivery's event as the one before it",
                event=events[-1].n,
                prev=event.n,
            )
        events.append(event)
        offset = event.prev
    events.reverse()
    return events


def _continues(earlier: Event, later: Event) -> bool:
    return earlier.n < later.n and (earlier.app, earlier.dev, earlier.msg) == (
        later.app,
        later.dev,
        later.msg,
    )


class ExplainedEvent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event of a delivery's history, for people and for machines."""

    n: int
    time: str
    since: Micros
    """Microseconds since the first event of the history."""
    what: str
    why: str
    link: str = ""
    facts: dict[str, str] = {}

    def __str__(self) -> str:
        over = f" over {self.link}" if self.link else ""
        facts = ", ".join(f"{name} {value}" for name, value in self.facts.items())
        return (
            f"{self.time}  {_after(self.since):>10}  {self.what}{over}: {self.why}"
            f"{f' ({facts})' if facts else ''}"
        )


def explain(events: Sequence[Event]) -> list[ExplainedEvent]:
    """Return what happened, when, why and over which link; `str` of each is a line for people."""
    return [
        ExplainedEvent(
            n=event.n,
            time=_time(event.t),
            since=event.t - events[0].t,
            what=event.kind.replace("_", " "),
            why=event.reason or _UNSAID.get(event.kind, "no reason recorded"),
            link=event.link,
            facts=_facts(event),
        )
        for event in events
    ]


def still_waiting(
    first: ExplainedEvent, reason: str, until: Micros | None, now: Micros
) -> ExplainedEvent:
    """Return a line for what a delivery waits for now, and until when; `first` is the oldest line
    of its history."""
    began = datetime.fromisoformat(first.time)
    return ExplainedEvent(
        n=-1,
        time=_time(now),
        since=max(0, now - round(began.timestamp() * SECOND)),
        what="waits",
        why=reason,
        facts={} if until is None else {"until": _time(until)},
    )


_UNSAID: dict[str, str] = {
    Kind.TRANSMITTED: "handed to the link",
    Kind.COUNTED: "its carrier has said what it took",
    Kind.RECEIVED: "the device has stored it",
    Kind.DELIVERED: "the application has had it",
}
"""Reasons that are the same every time, and are therefore not stored with each event."""


def _facts(event: Event) -> dict[str, str]:
    """Return what else the event says, in the order of the journey."""
    facts = {
        "from": event.source,
        "for": event.target,
        "queue": event.queue,
        "size": f"{event.size} bytes" if event.size else "",
        "priority": str(event.priority) if event.priority >= 0 else "",
        "rank": f"{event.rank:g}" if event.rank else "",
        "not before": _time(event.after) if event.after else "",
        "not after": _time(event.before) if event.before else "",
        "number": f"{event.epoch}/{event.seq}" if event.seq >= 0 else "",
        "lane": str(event.lane) if event.lane else "",
        "attempt": str(event.attempt) if event.attempt else "",
        "bytes": str(event.bytes) if event.bytes else "",
        "units": str(event.count) if event.kind == Kind.COUNTED else "",
        "cost": f"{event.cost:g}" if event.cost else "",
        "policy": event.policy,
        "other message": f"{event.other:016x}" if event.other else "",
    }
    return {name: value for name, value in facts.items() if value}


def _time(time: Micros) -> str:
    return datetime.fromtimestamp(time // SECOND, UTC).strftime(
        f"%Y-%m-%dT%H:%M:%S.{time % SECOND:06d}Z"
    )


def _after(time: Micros) -> str:
    """Format a span of time for people.

    >>> _after(1_500_000)
    '+1.500 s'
    """
    if abs(time) < SECOND:
        return f"+{time / MILLISECOND:.3f} ms"
    if abs(time) < MINUTE:
        return f"+{time / SECOND:.3f} s"
    days, rest = divmod(time, DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    clock = f"{hours:d}:{minutes:02d}:{rest // SECOND:02d}"
    return f"+{days}d {clock}" if days else f"+{clock}"
