"""Receives result notifications as a push initiator, for `lasthop pap listen`."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer

from lasthop.errors import LasthopError
from lasthop.wire.pap.documents import (
    Document,
    ResultNotificationMessage,
    ResultNotificationResponse,
)
from lasthop.wire.pap.refusals import refusal
from lasthop.wire.pap.submission import PapSubmission, read_submission, write_submission
from lasthop.wire.pap.versions import SUPPORTED

MAX_BODY = 8 << 20


class PapListener(HTTPServer):
    """An HTTP server that passes every result notification to `heard` and acknowledges it."""

    def __init__(
        self,
        host: str,
        port: int,
        heard: Callable[[ResultNotificationMessage, PapSubmission], None],
    ) -> None:
        super().__init__((host, port), _Handler)
        self.heard = heard


class _Handler(BaseHTTPRequestHandler):
    server: PapListener

    def do_POST(self) -> None:
        """Receive a result notification; refuse any other message."""
        length = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(min(length, MAX_BODY))
        answer = self._answer(body)
        kind, written = write_submission(PapSubmission(answer))
        self.send_response(202)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)

    def _answer(self, body: bytes) -> Document:
        try:
            given = read_submission(self.headers.get("Content-Type", ""), body)
        except LasthopError as error:
            return refusal(error, received=body)
        message = given.document.message
        if not isinstance(message, ResultNotificationMessage):
            return refusal(
                LasthopError("only result notifications are accepted here"), request=given.document
            )
        self.server.heard(message, given)
        heard = ResultNotificationResponse(1000, message.push_id, message.address, "OK")
        return Document(heard, given.document.version, SUPPORTED)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing: standard error is for failures."""
