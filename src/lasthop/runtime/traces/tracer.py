"""Assembles the traces of a running gateway: reads its events, and sends spans to a collector."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

import msgspec
import structlog

from lasthop import __version__
from lasthop.events import Event
from lasthop.runtime.failure import Failure
from lasthop.runtime.settings.operators import Traces
from lasthop.runtime.traces.journeys import Journey, Journeys, spans_of
from lasthop.runtime.traces.shipping import CollectorAnswer, Shipping, ShippingPace
from lasthop.runtime.traces.spans import Attributes, Span
from lasthop.transport.http import HttpFailure, post

TIMEOUT = 10.0
"""Seconds that one request to the collector may take; a shutdown waits for at most one request."""

MAX_ANSWER = 64 * 1024

log = structlog.get_logger()

_decode = msgspec.json.Decoder(Event).decode


class Tracer:
    """Reads events, and sends the spans of every delivery that has ended."""

    def __init__(
        self,
        settings: Traces,
        *,
        gateway: str,
        event_at: Callable[[int], bytes | None],
        pace: ShippingPace | None = None,
    ) -> None:
        encode, rejected = _codec()
        resource: Attributes = {
            "service.name": settings.service,
            "service.instance.id": gateway,
            "service.version": __version__,
        }
        self._journeys = Journeys(sample=settings.sample, earlier=partial(_earlier, event_at))
        self._shipping = Shipping(
            partial(_send, settings, lambda spans: encode(spans, resource), rejected), pace
        )
        self._failed = False

    @property
    def counts(self) -> dict[str, int]:
        """The number of spans by outcome: sent, dropped, rejected."""
        return dict(self._shipping.counts)

    @property
    def open(self) -> int:
        """The number of traced deliveries that have not ended."""
        return len(self._journeys)

    def note(self, event: Event) -> None:
        """Note an event. If that fails, the fault is logged once and never raised, since the export
        of the log must go on."""
        try:
            journey = self._journeys.note(event)
        except Exception:
            if not self._failed:
                log.exception("an event could not be traced", n=event.n)
            self._failed = True
            return
        if journey is not None:
            self._shipping.offer(journey)

    def close(self) -> None:
        """Try to send what is left, and stop."""
        self._shipping.close()


def _codec() -> tuple[Callable[[list[Span], Attributes], bytes], Callable[[bytes], int]]:
    try:
        from lasthop.runtime.traces import otlp  # noqa: PLC0415 - an extra
    except ImportError:
        raise Failure("traces need a further package: pip install 'lasthop[otel]'") from None
    return otlp.encode, otlp.rejected


def _earlier(event_at: Callable[[int], bytes | None], offset: int) -> Event | None:
    line = event_at(offset)
    return None if line is None else _decode(line)


def _send(
    settings: Traces,
    encode: Callable[[list[Span]], bytes],
    rejected: Callable[[bytes], int],
    journeys: list[Journey],
) -> CollectorAnswer:
    """Post a batch to the collector, and return its answer."""
    spans = [span for journey in journeys for span in spans_of(journey)]
    headers = (
        ("Content-Type", "application/x-protobuf"),
        ("User-Agent", f"lasthop/{__version__}"),
        *settings.sent_headers,
    )
    request = post(settings.endpoint, headers, encode(spans), timeout=TIMEOUT, limit=MAX_ANSWER)
    try:
        answer = asyncio.run(request)
    except HttpFailure as failure:
        return CollectorAnswer(0, failure.reason)
    wait = answer.header("retry-after")
    return CollectorAnswer(
        answer.status,
        rejected=rejected(answer.body) if answer.status == 200 else 0,
        retry_after=float(wait) if wait.isascii() and wait.isdigit() else 0.0,
    )
