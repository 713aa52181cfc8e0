"""Spans on their way to a collector: in batches, within bounds, and every one accounted for."""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue
from threading import Event

import pytest

from lasthop.events import Kind
from lasthop.runtime.settings.operators import Traces
from lasthop.runtime.traces.journeys import Journey
from lasthop.runtime.traces.shipping import CollectorAnswer, Shipping, ShippingPace
from lasthop.runtime.traces.spans import Span, SpanMoment
from lasthop.runtime.traces.tracer import Tracer
from lasthop.wire.tracecontext import TraceContext
from tests.runtime.traces.collector import DEADLINE, Collector, plain
from tests.runtime.traces.test_journeys import PLAIN, told

QUICK = ShippingPace(interval=0.01, first_pause=0.01, longest_pause=0.02)
OK = CollectorAnswer(200)


def span(n: int = 1) -> Span:
    return Span(trace=bytes(16), id=n.to_bytes(8), parent=b"", name="deliver", start=1, end=2)


def journey(n: int = 1, steps: int = 1) -> Journey:
    """One that is over, of so many spans."""
    made = Journey(TraceContext(bytes(16), n.to_bytes(8), True), b"")
    made.steps = told([*PLAIN[:1] * (steps - 1), (Kind.DELIVERED, 1)])
    assert made.size == steps
    return made


class Scripted:
    """A collector that says what it is told to, and waits to be let."""

    def __init__(self, *answers: CollectorAnswer) -> None:
        self.answers = list(answers)
        self.got: Queue[list[int]] = Queue()
        self.go = Event()
        self.go.set()

    def __call__(self, journeys: list[Journey]) -> CollectorAnswer:
        self.got.put([int.from_bytes(journey.context.span) for journey in journeys])
        assert self.go.wait(DEADLINE)
        return self.answers.pop(0) if self.answers else OK


def test_spans_go_together_and_in_order() -> None:
    collector = Scripted()
    shipping = Shipping(collector, ShippingPace(batch=3, interval=DEADLINE))
    for n in range(7):
        shipping.offer(journey(n))
    assert collector.got.get(timeout=DEADLINE) == [0, 1, 2]
    assert collector.got.get(timeout=DEADLINE) == [3, 4, 5]
    assert collector.got.empty()  # The last one waits for company, or for the end.
    shipping.close()
    assert collector.got.get_nowait() == [6]
    assert shipping.counts == {"sent": 7, "dropped": 0, "rejected": 0}


def test_one_span_alone_leaves_after_a_while() -> None:
    collector = Scripted()
    shipping = Shipping(collector, QUICK)
    shipping.offer(journey(1))
    assert collector.got.get(timeout=DEADLINE) == [1]
    shipping.close()


@pytest.mark.parametrize("status", [0, 429, 502, 503, 504])
def test_a_collector_that_is_busy_or_away_gets_the_same_again(status: int) -> None:
    collector = Scripted(CollectorAnswer(status), CollectorAnswer(status))
    shipping = Shipping(collector, QUICK)
    shipping.offer(journey(1))
    assert [collector.got.get(timeout=DEADLINE) for _ in range(3)] == [[1]] * 3
    shipping.close()
    assert shipping.counts == {"sent": 1, "dropped": 0, "rejected": 0}


@pytest.mark.parametrize("status", [301, 400, 401, 404, 413, 500])
def test_what_a_collector_refuses_is_counted_and_not_tried_again(status: int) -> None:
    collector = Scripted(CollectorAnswer(status))
    shipping = Shipping(collector, QUICK)
    shipping.offer(journey(1, steps=3))
    assert collector.got.get(timeout=DEADLINE) == [1]
    shipping.close()
    assert collector.got.empty()
    assert shipping.counts == {"sent": 0, "dropped": 0, "rejected": 3}


def test_spans_that_find_no_room_are_dropped_and_counted_and_nobody_waits() -> None:
    collector = Scripted()
    collector.go.clear()
    shipping = Shipping(collector, ShippingPace(queue=5, batch=2, interval=DEADLINE))
    for n in range(2):
        shipping.offer(journey(n))
    assert collector.got.get(timeout=DEADLINE) == [0, 1]  # Under way, and answered by nobody.
    shipping.offer(journey(2, steps=4))
    shipping.offer(journey(3, steps=2))
    assert shipping.counts["dropped"] == 2, "there was room for one span more"
    shipping.offer(journey(4))
    for n in range(5, 100):
        shipping.offer(journey(n))
    assert shipping.counts["dropped"] == 97
    collector.go.set()
    shipping.close()
    assert shipping.counts == {"sent": 7, "dropped": 97, "rejected": 0}


def test_an_end_is_not_held_up_by_a_collector_that_is_away() -> None:
    collector = Scripted(*[CollectorAnswer(0)] * 10)
    shipping = Shipping(collector, ShippingPace(batch=2, interval=DEADLINE, first_pause=DEADLINE))
    for n in range(5):
        shipping.offer(journey(n))
    assert collector.got.get(timeout=DEADLINE) == [0, 1]
    shipping.close()
    assert shipping.counts == {"sent": 0, "dropped": 5, "rejected": 0}


def tracer(collector_url: str, **settings: str) -> Tracer:
    chosen = Traces(endpoint=collector_url, **settings)  # type: ignore[arg-type]
    return Tracer(chosen, gateway="gw", event_at=lambda offset: None, pace=QUICK)


def hear(one: Tracer, count: int = 1) -> None:
    for n in range(count):
        for event in told(PLAIN, dev=f"d{n}"):
            one.note(event)


def test_a_real_collector_reads_what_was_sent() -> None:
    with Collector() as collector:
        one = tracer(collector.url, headers="authorization=Bearer x, tenant=y", service="edge")
        hear(one)
        headers, request = collector.requests.get(timeout=DEADLINE)
        one.close()
    assert (headers["path"], headers["authorization"], headers["tenant"]) == (
        "/v1/traces",
        "Bearer x",
        "y",
    )
    assert headers["content-type"] == "application/x-protobuf"
    (resource,) = request.resource_spans
    described = plain(resource.resource.attributes)
    assert (described["service.name"], described["service.instance.id"]) == ("edge", "gw")
    (scope,) = resource.scope_spans
    assert [span.name for span in scope.spans] == ["deliver", "wait", "transmit", "handle"]
    whole = scope.spans[0]
    assert (len(whole.trace_id), len(whole.span_id)) == (16, 8)
    assert whole.end_time_unix_nano - whole.start_time_unix_nano == 39_000
    assert [event.name for event in whole.events] == [kind for kind, _ in PLAIN]
    assert one.counts == {"sent": 4, "dropped": 0, "rejected": 0}


def test_what_a_real_collector_does_not_want_is_counted() -> None:
    with Collector() as collector:
        collector.rejects = 3
        one = tracer(collector.url)
        hear(one)
        one.close()
    assert one.counts == {"sent": 1, "dropped": 0, "rejected": 3}


def test_nothing_is_lost_while_a_real_collector_restarts() -> None:
    with Collector() as first:
        port = first.port
    one = tracer(f"http://127.0.0.1:{port}/v1/traces")
    hear(one, 10)
    with Collector(port) as second:
        second.answers.extend([503, 429])
        assert len(second.journeys(10)) == 40
        one.close()
    assert one.counts == {"sent": 40, "dropped": 0, "rejected": 0}


def test_values_keep_their_types() -> None:
    otlp = pytest.importorskip("lasthop.runtime.traces.otlp")
    made = span()
    made.attributes = {"text": "x", "count": 3, "share": 0.5, "whole": True}
    made.moments = [SpanMoment(5, "held", {"reason": "r"})]
    made.failure = "expired"
    encode: Callable[..., bytes] = otlp.encode
    request = otlp.ExportTraceServiceRequest.FromString(encode([made], {}))
    found = request.resource_spans[0].scope_spans[0].spans[0]
    assert plain(found.attributes) == made.attributes
    assert (found.status.code, found.status.message) == (otlp.Status.STATUS_CODE_ERROR, "expired")
    assert plain(found.events[0].attributes) == {"reason": "r"}
    assert otlp.rejected(b"\xff\xff not protobuf") == 0
