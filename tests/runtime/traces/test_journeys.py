"""Spans from events: every delivery once, in its trace, with its time fully told."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from lasthop.events import SCHEMA_VERSION, Event, Kind
from lasthop.message import first_key_at
from lasthop.runtime.traces.journeys import ENDS, FAILURES, MOST_STEPS, Journeys, spans_of
from lasthop.runtime.traces.spans import Span

START = 1_763_200_000_000_000
CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = CONTEXT[:-1] + "0"
KEY = first_key_at(START)


def told(
    steps: Iterable[tuple[str, int]], msg: int = KEY, dev: str = "d", **first: str
) -> list[Event]:
    """The events of one delivery: what happened, and how long after the one before."""
    events: list[Event] = []
    now = START
    for n, (kind, pause) in enumerate(steps):
        now += pause
        prev = n - 1 if n else -1
        event = Event(SCHEMA_VERSION, "gw", 1, n, now, kind, app="a", dev=dev, msg=msg, prev=prev)
        events.append(event)
    for name, value in first.items():
        setattr(events[0], name, value)
    return events


def heard(journeys: Journeys, events: Iterable[Event]) -> list[Span]:
    spans: list[Span] = []
    for event in events:
        over = journeys.note(event)
        if over is not None:
            made = spans_of(over)
            assert len(made) == over.size
            spans += made
    return spans


PLAIN = (
    (Kind.ACCEPTED, 0),
    (Kind.HELD, 5),
    (Kind.RELEASED, 10),
    (Kind.TRANSMITTED, 1),
    (Kind.RECEIVED, 20),
    (Kind.DELIVERED, 3),
)


def test_a_delivery_is_a_span_with_its_waits_and_transmissions_as_parts() -> None:
    events = told(PLAIN, trace=CONTEXT, target="topic:news")
    events[1].reason = "no credit"
    events[3].link, events[3].bytes = "wifi", 300
    whole, wait, transmit, handle = heard(Journeys(), events)
    assert (whole.name, whole.start, whole.end) == ("deliver", START, START + 39)
    assert (whole.trace.hex(), whole.parent.hex()) == (CONTEXT[3:35], CONTEXT[36:52])
    assert whole.consumer
    assert whole.failure is None
    assert whole.attributes["messaging.destination.name"] == "topic:news"
    assert whole.attributes["messaging.message.id"] == f"{KEY:016x}"
    assert whole.attributes["lasthop.state"] == "delivered"
    assert (whole.attributes["lasthop.attempts"], whole.attributes["lasthop.bytes"]) == (1, 300)
    assert [moment.name for moment in whole.moments] == [kind for kind, _ in PLAIN]
    assert whole.moments[1].attributes == {"lasthop.reason": "no credit"}
    assert [part.name for part in (wait, transmit, handle)] == ["wait", "transmit", "handle"]
    assert [part.parent for part in (wait, transmit, handle)] == [whole.id] * 3
    assert (wait.start, wait.end) == (START, START + 15)
    assert (transmit.start, transmit.end) == (START + 16, START + 36)
    assert transmit.attributes == {"lasthop.link": "wifi", "lasthop.bytes": 300}
    assert (handle.start, handle.end) == (START + 36, START + 39)


def test_what_came_in_no_trace_begins_one_that_is_called_like_the_message() -> None:
    whole = heard(Journeys(), told(PLAIN))[0]
    other = heard(Journeys(), told(PLAIN, dev="e"))[0]
    assert (whole.parent, whole.consumer) == (b"", False)
    assert whole.trace.hex().startswith(f"{KEY:016x}")
    assert (other.trace, other.id != whole.id) == (whole.trace, True)


def test_who_does_not_record_a_trace_gets_no_spans_of_it() -> None:
    journeys = Journeys(sample=1.0)
    assert heard(journeys, told(PLAIN, trace=UNSAMPLED)) == []
    assert len(journeys) == 0


@pytest.mark.parametrize("kind", sorted(ENDS))
def test_a_bad_end_is_a_failure_and_says_why(kind: str) -> None:
    events = told([(Kind.ACCEPTED, 0), (kind, 7)])
    events[1].reason = "because"
    assert heard(Journeys(), events)[0].failure == ("because" if kind in FAILURES else None)


def test_a_sample_is_a_share_of_messages_and_the_same_at_every_gateway_life() -> None:
    def chosen(sample: float) -> set[int]:
        journeys = Journeys(sample=sample)
        keys = range(KEY, KEY + 1000)
        return {k for k in keys if heard(journeys, told(PLAIN, msg=k))}

    assert not chosen(0.0)
    assert len(chosen(1.0)) == 1000
    assert 200 < len(chosen(0.25)) < 300
    assert chosen(0.25) < chosen(0.5)
    assert len(told(PLAIN, trace=CONTEXT)) == len(PLAIN)
    assert heard(Journeys(sample=0.0), told(PLAIN, trace=CONTEXT))


def test_what_began_before_we_listened_is_recalled_from_the_store() -> None:
    events = told(PLAIN, trace=CONTEXT)
    recalled = Journeys(earlier=lambda offset: events[offset])
    assert heard(recalled, events[3:]) == heard(Journeys(), events)
    forgotten = heard(Journeys(), events[3:])
    assert forgotten[0].attributes["lasthop.partial"] is True
    assert forgotten[0].start == START
    assert [part.name for part in forgotten[1:]] == ["transmit", "handle"]


def test_what_was_not_traced_is_not_traced_when_it_is_recalled() -> None:
    events = told(PLAIN, trace=UNSAMPLED)
    assert heard(Journeys(earlier=lambda offset: events[offset]), events[3:]) == []


def test_memory_is_bounded_however_many_stay_open() -> None:
    journeys = Journeys(most_open=10)
    for key in range(KEY, KEY + 100):
        heard(journeys, told(PLAIN[:3], msg=key))
    assert (len(journeys), journeys.forgotten) == (10, 90)
    assert (
        heard(journeys, told(PLAIN, msg=KEY + 99)[3:])[0].attributes.get("lasthop.partial") is None
    )
    partial = heard(journeys, told(PLAIN, msg=KEY)[3:])[0]
    assert partial.attributes["lasthop.partial"] is True
    assert len(journeys) == 9


def test_an_endless_story_is_cut_and_still_ends() -> None:
    again = [(Kind.RELEASED, 1), (Kind.TRANSMITTED, 1), (Kind.REQUEUED, 1)] * MOST_STEPS
    whole, *parts = heard(Journeys(), told([(Kind.ACCEPTED, 0), *again, (Kind.EXPIRED, 9)]))
    assert len(whole.moments) == MOST_STEPS + 1
    assert whole.end == START + 3 * MOST_STEPS + 9
    assert len(parts) <= MOST_STEPS


ATTEMPT = st.lists(
    st.sampled_from(
        [Kind.HELD, Kind.CONSULTED, Kind.RELEASED, Kind.TRANSMITTED, Kind.RECEIVED, Kind.REQUEUED]
    ),
    max_size=20,
)
STORIES = st.lists(
    st.tuples(ATTEMPT, st.sampled_from(sorted(ENDS)), st.booleans()), min_size=1, max_size=6
)


@given(STORIES, st.randoms(use_true_random=False), st.integers(0, 9))
def test_every_delivery_that_ends_is_told_once_whatever_is_mixed_with_it(
    stories: list[tuple[list[str], str, bool]], random: object, pause: int
) -> None:
    deliveries: list[list[Event]] = []
    for n, (steps, end, ends) in enumerate(stories):
        kinds = [Kind.ACCEPTED, *steps, *([end] if ends else [])]
        deliveries.append(told([(kind, pause) for kind in kinds], msg=KEY + n // 2, dev=f"d{n}"))
    mixed: list[Event] = []
    waiting = [list(events) for events in deliveries]
    while any(waiting):
        chosen = random.choice([events for events in waiting if events])  # type: ignore[attr-defined]
        mixed.append(chosen.pop(0))
    journeys = Journeys()
    spans = heard(journeys, mixed)
    assert spans == [
        s for e in mixed for s in heard(Journeys(), _story_of(e, deliveries)) if _is_end(e)
    ]
    wholes = {span.id: span for span in spans if span.name == "deliver"}
    assert len({span.id for span in spans}) == len(spans)
    assert len(wholes) == sum(ends for _, _, ends in stories)
    assert len(journeys) == len(stories) - len(wholes)
    for whole in wholes.values():
        parts = [span for span in spans if span.parent == whole.id]
        assert all(whole.start <= p.start <= p.end <= whole.end for p in parts)
        assert all(a.end <= b.start for a, b in pairwise(parts))
        assert {part.trace for part in parts} <= {whole.trace}


def _is_end(event: Event) -> bool:
    return event.kind in ENDS


def _story_of(event: Event, deliveries: list[list[Event]]) -> list[Event]:
    return next(events for events in deliveries if any(e is event for e in events))
