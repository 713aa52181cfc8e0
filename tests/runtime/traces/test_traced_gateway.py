"""A gateway as a user runs it, with publishers and devices that trace, and a real collector.

About `runtime/traces/tracer.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from lasthop.runtime import traces
from lasthop.runtime.failure import Failure
from lasthop.runtime.settings.operators import Traces
from lasthop.runtime.traces.tracer import Tracer
from lasthop.wire.pap.documents import Document, PushMessage
from lasthop.wire.pap.submission import PapSubmission, write_submission
from lasthop.wire.pap.versions import Version
from tests.access.pap.initiating import CONTENT
from tests.runtime.processes import DeviceProcess, GatewayProcess, eventually
from tests.runtime.traces.collector import Collector, plain

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = f"00-{TRACE}-{SPAN}-01"


def config(path: Path, endpoint: str) -> list[str]:
    file = path / "lasthop.toml"
    file.write_text(f'[traces]\nendpoint = "{endpoint}"\n')
    return ["--config", str(file)]


def test_a_publishers_trace_goes_on_through_the_gateway_to_the_device(
    tmp_path: Path,
) -> None:
    with (
        Collector() as collector,
        GatewayProcess(tmp_path / "data", *config(tmp_path, collector.url)) as up,
        DeviceProcess(up.tcp, "phone", tmp_path / "log") as device,
    ):
        eventually(lambda: bool(up.get_json("/v1/devices")["devices"]), "the device is known")
        body = json.dumps({"device": "phone", "body": "by REST"}).encode()
        assert up.request("POST", "/v1/messages", body, traceparent=CONTEXT)[0] == 202
        got = json.loads(device.line())
        assert got["headers"] == {"traceparent": CONTEXT}
        spans = collector.journeys(1)
        whole = next(span for span in spans if span.name == "deliver")
        assert (whole.trace_id.hex(), whole.parent_span_id.hex()) == (TRACE, SPAN)
        assert plain(whole.attributes)["lasthop.device"] == "phone"
        names = [event.name for event in whole.events]
        assert (names[0], names[-1]) == ("accepted", "delivered")
        assert {"released", "transmitted"} <= set(names)
        assert {span.name for span in spans} >= {"deliver", "wait", "transmit"}

        up.push({"device": "phone", "body": "in no trace"})
        got = json.loads(device.line())
        assert "traceparent" not in got.get("headers", {})
        (whole,) = (span for span in collector.journeys(1) if span.name == "deliver")
        assert whole.trace_id.hex().startswith(got["id"][:16])

        page = up.request("GET", "/metrics")[1].decode()
        assert 'lasthop_trace_spans_total{outcome="dropped"} 0.0' in page
        assert "lasthop_trace_open 0.0" in page


def test_traces_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "lasthop.runtime.traces.otlp", raising=False)
    monkeypatch.delattr(traces, "otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.trace.v1.trace_pb2", None)
    with pytest.raises(Failure, match=r"pip install 'lasthop\[otel\]'"):
        Tracer(Traces(endpoint="http://x/"), gateway="gw", event_at=lambda offset: None)


def test_a_push_of_pap_that_waited_for_its_device_is_in_its_initiators_trace(
    tmp_path: Path,
) -> None:
    push = PushMessage("1@pi", ("WAPPUSH=alice/TYPE=USER@ppg.example.com",))
    kind, body = write_submission(PapSubmission(Document(push, Version.V2_1), CONTENT))
    with (
        Collector() as collector,
        GatewayProcess(tmp_path / "data", *config(tmp_path, collector.url)) as up,
    ):
        made = up.request("POST", "/v1/devices", b'{"name":"phone","user":"alice"}')[1]
        headers = {"Content-Type": kind, "Traceparent": CONTEXT}
        assert up.request("POST", "/pap", body, **headers)[0] == 202
        token = json.loads(made)["token"]
        with DeviceProcess(up.tcp, "phone", tmp_path / "log", "--token", token) as device:
            assert json.loads(device.line())["headers"]["traceparent"] == CONTEXT
            (whole,) = (span for span in collector.journeys(1) if span.name == "deliver")
    assert (whole.trace_id.hex(), whole.parent_span_id.hex()) == (TRACE, SPAN)
    assert plain(whole.attributes)["messaging.destination.name"] == "user:alice"


def test_a_gateway_whose_collector_is_away_delivers_and_stops_as_ever(tmp_path: Path) -> None:
    with (
        GatewayProcess(tmp_path / "data", *config(tmp_path, "http://127.0.0.1:1/")) as up,
        DeviceProcess(up.tcp, "phone", tmp_path / "log") as device,
    ):
        eventually(lambda: bool(up.get_json("/v1/devices")["devices"]), "the device is known")
        up.push({"device": "phone", "body": "all the same"})
        assert json.loads(device.line())["body"] == "all the same"
        assert up.terminate() == 0
    assert "traces not sent; the collector is away or busy" in up.errors.read_text()
