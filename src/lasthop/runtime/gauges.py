"""The metrics that are read from the running parts of a gateway at every scrape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lasthop.access.pap import PapDoor
from lasthop.access.rest import Door
from lasthop.delivery.listener import Listener
from lasthop.runtime.engine import Engine
from lasthop.runtime.guard import Guard
from lasthop.runtime.metrics import Metrics
from lasthop.runtime.tls import Certificates
from lasthop.runtime.traces.tracer import Tracer

if TYPE_CHECKING:
    from lasthop.runtime.issuers.verifying import Issuer


def show(
    metrics: Metrics,
    engine: Engine,
    door: Door,
    initiators: PapDoor,
    listeners: Mapping[str, Listener],
) -> None:
    """Add the state of these parts to the metrics."""
    gateway = engine.gateway
    metrics.gauge("lasthop_connections", "Open device channels.", lambda: engine.connections)
    metrics.gauge(
        "lasthop_open_deliveries",
        "Deliveries that have not ended.",
        lambda: gateway.deliveries.open_deliveries,
    )
    metrics.gauge("lasthop_devices", "Registered devices.", lambda: len(gateway.registry))
    metrics.gauge("lasthop_http_waiting", "Requests that wait.", lambda: door.waiting)
    metrics.counts(
        "lasthop_http_errors",
        "Requests refused, by code.",
        ["code"],
        lambda: {(code,): count for code, count in door.refused.items()},
    )
    metrics.counts(
        "lasthop_pap_errors",
        "Requests of push initiators refused, by code.",
        ["code"],
        lambda: {(code,): count for code, count in initiators.refused.items()},
    )
    metrics.gauge(
        "lasthop_pap_notifications",
        "Outcomes of pushes that were not yet reported to their initiators.",
        lambda: len(gateway.notifications),
    )
    hub = door.hub
    metrics.gauge("lasthop_listeners", "Listeners of topics over HTTP.", lambda: hub.count)
    metrics.counts(
        "lasthop_listener_messages",
        "Messages handed to listeners of topics over HTTP, and listeners that fell behind.",
        ["outcome"],
        lambda: {("sent",): hub.sent, ("fell behind",): hub.fallen_behind},
    )
    histories = gateway.topics.histories
    metrics.gauge(
        "lasthop_remembered_messages",
        "Messages that topics remember.",
        lambda: histories.remembered,
    )
    metrics.gauge(
        "lasthop_remembering_topics",
        "Topics that remember anything.",
        lambda: histories.topics,
    )
    filters = gateway.topics.index.filters
    metrics.counts(
        "lasthop_filter_messages",
        "Messages that were matched with subscribers' XPath filters, by outcome.",
        ["outcome"],
        lambda: {(str(outcome),): count for outcome, count in filters.outcomes.items()},
    )
    surrogates = gateway.surrogates
    if surrogates in gateway.features:
        metrics.gauge(
            "lasthop_surrogate_waiting",
            "Messages that wait for their app's surrogate.",
            lambda: surrogates.waiting,
        )
        metrics.counts(
            "lasthop_surrogate_messages",
            "Messages handled by surrogates, by app and outcome.",
            ["app", "outcome"],
            surrogates.outcomes,
        )
    metrics.counts(
        "lasthop_hop_errors",
        "Channels that ended badly, by carrier and reason.",
        ["carrier", "reason"],
        lambda: {
            (carrier, reason): count
            for carrier, listener in listeners.items()
            for reason, count in listener.errors.items()
        },
    )


def show_connections(metrics: Metrics, guard: Guard) -> None:
    """Add the number of open connections of the HTTP server to the metrics."""
    metrics.gauge(
        "lasthop_http_connections",
        "Open HTTP and WebSocket connections.",
        lambda: guard.admission.connections,
    )


def show_certificates(metrics: Metrics, certificates: Certificates) -> None:
    """Add the end of the TLS certificate in use, and how often it was reloaded, to the metrics."""
    metrics.gauge(
        "lasthop_tls_certificate_expires_timestamp_seconds",
        "When the TLS certificate in use ends, in seconds since 1970.",
        lambda: certificates.expires,
    )
    metrics.counts(
        "lasthop_tls_reloads",
        "Times that the TLS certificate was read again, by outcome.",
        ["outcome"],
        lambda: {(outcome,): count for outcome, count in certificates.outcomes.items()},
    )


def show_issuers(metrics: Metrics, issuers: Sequence[Issuer]) -> None:
    """Add the number of issuers whose keys cannot be fetched to the metrics."""
    metrics.gauge(
        "lasthop_issuers_failing",
        "Issuers of signed tokens whose keys could not be fetched when that was tried last.",
        lambda: sum(bool(issuer.problem) for issuer in issuers),
    )


def show_traces(metrics: Metrics, tracer: Tracer) -> None:
    """Add the numbers of traced deliveries and exported spans to the metrics."""
    metrics.gauge("lasthop_trace_open", "Deliveries that are traced.", lambda: tracer.open)
    metrics.counts(
        "lasthop_trace_spans",
        "Spans of traces, by outcome.",
        ["outcome"],
        lambda: {(outcome,): count for outcome, count in tracer.counts.items()},
    )
