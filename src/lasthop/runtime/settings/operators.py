"""The settings for operators: traces and plugins."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from lasthop.wire.tracecontext import Headers


class Traces(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Traces of messages, for a collector of OpenTelemetry; they need lasthop[otel]."""

    endpoint: Annotated[
        str,
        Meta(
            description="URL to which traces are sent by OTLP over HTTP, such as"
            " http://localhost:4318/v1/traces; empty turns them off.",
            pattern=r"^(https?://[^\s/]+(/\S*)?)?$",
            examples=["http://localhost:4318/v1/traces"],
        ),
    ] = ""
    headers: Annotated[
        str,
        Meta(
            description='Further headers of these requests, such as "authorization=Bearer x",'
            " separated by commas.",
            pattern=r"^(\s*[A-Za-z0-9-]+\s*=[^,\r\n]*(,|$))*$",
            examples=["authorization=Bearer x,tenant=y"],
        ),
    ] = ""
    sample: Annotated[
        float,
        Meta(
            description="The share of messages that are traced, of those without a trace.",
            ge=0,
            le=1,
        ),
    ] = 1.0
    service: Annotated[
        str, Meta(description="The gateway's name among traced services.", min_length=1)
    ] = "lasthop"

    @property
    def sent_headers(self) -> Headers:
        """The headers of requests to the collector, as pairs."""
        pairs = (pair.partition("=") for pair in self.headers.split(",") if pair.strip())
        return tuple((name.strip(), value.strip()) for name, _, value in pairs)


class Plugins(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Plugins from installed packages. Nothing is loaded that is not named here."""

    policies: Annotated[
        tuple[str, ...],
        Meta(description="Forwarding policies, by the names of their entry points."),
    ] = ()
    carriers: Annotated[
        tuple[str, ...],
        Meta(description="Carriers over the air, by the names of their entry points."),
    ] = ()
