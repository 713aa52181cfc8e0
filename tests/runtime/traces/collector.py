"""A collector of OTLP over HTTP, as far as a gateway can tell: it decodes what it is given."""

from __future__ import annotations

from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

DEADLINE = 60.0


class Collector:
    """Keeps what it gets. `answers` has statuses for the next requests; then all is well."""

    def __init__(self, port: int = 0) -> None:
        self.requests: Queue[tuple[dict[str, str], ExportTraceServiceRequest]] = Queue()
        self.answers: deque[int] = deque()
        self.rejects = 0
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status = collector.answers.popleft() if collector.answers else 200
                answer = ExportTraceServiceResponse()
                answer.partial_success.rejected_spans = collector.rejects
                written = answer.SerializeToString() if status == 200 else b"no"
                if status == 200:
                    given = {name.lower(): value for name, value in self.headers.items()}
                    given["path"] = self.path
                    collector.requests.put((given, ExportTraceServiceRequest.FromString(body)))
                self.send_response(status)
                self.send_header("content-length", str(len(written)))
                self.end_headers()
                self.wfile.write(written)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1/traces"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def spans(self) -> list[Span]:
        """Those of the next request."""
        _, request = self.requests.get(timeout=DEADLINE)
        return [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]

    def journeys(self, count: int) -> list[Span]:
        """The spans of so many deliveries, with all their parts."""
        found: list[Span] = []
        while sum(span.name == "deliver" for span in found) < count:
            found += self.spans()
        return found


def plain(attributes: Any) -> dict[str, str | int | float | bool]:
    """Attributes as a dictionary."""
    return {one.key: _plain(one) for one in attributes}


def _plain(one: KeyValue) -> Any:
    kind = one.value.WhichOneof("value")
    assert kind is not None
    return getattr(one.value, kind)
