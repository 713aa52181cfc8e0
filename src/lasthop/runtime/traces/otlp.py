"""Encodes spans for OTLP: protobuf, for `POST /v1/traces`."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import (
    ResourceSpans,
    ScopeSpans,
    Span as OtlpSpan,
    Status,
)

from lasthop import __version__
from lasthop.runtime.traces.spans import Attributes, Span

CONTENT_TYPE = "application/x-protobuf"

_NANOS = 1000
"""Nanoseconds in a microsecond."""


def encode(spans: Iterable[Span], resource: Attributes) -> bytes:
    """Return the body of one request, for spans of one gateway."""
    scope = InstrumentationScope(name="lasthop", version=__version__)
    scoped = ScopeSpans(scope=scope, spans=map(_span, spans))
    described = Resource(attributes=_attributes(resource))
    request = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(resource=described, scope_spans=[scoped])]
    )
    return request.SerializeToString()


def rejected(answer: bytes) -> int:
    """Return how many spans of a request the collector has rejected, according to its answer."""
    try:
        response = ExportTraceServiceResponse.FromString(answer)
    except DecodeError:
        return 0  # The status was 200, so an unreadable body does not matter.
    return response.partial_success.rejected_spans


def _span(span: Span) -> OtlpSpan:
    made = OtlpSpan(
        trace_id=span.trace,
        span_id=span.id,
        parent_span_id=span.parent,
        name=span.name,
        kind=OtlpSpan.SPAN_KIND_CONSUMER if span.consumer else OtlpSpan.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.start * _NANOS,
        end_time_unix_nano=span.end * _NANOS,
        attributes=_attributes(span.attributes),
        events=[
            OtlpSpan.Event(
                time_unix_nano=moment.at * _NANOS,
                name=moment.name,
                attributes=_attributes(moment.attributes),
            )
            for moment in span.moments
        ],
    )
    if span.failure is not None:
        made.status.code = Status.STATUS_CODE_ERROR
        made.status.message = span.failure
    return made


def _attributes(given: Attributes) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in given.items()]


def _value(value: str | int | float | bool) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case _:
            return AnyValue(string_value=value)
