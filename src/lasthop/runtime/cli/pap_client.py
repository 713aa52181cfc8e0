"""Sends requests to any Push Proxy Gateway over HTTP, with the standard library alone."""

from __future__ import annotations

import http.client
import ssl
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from lasthop.errors import LasthopError
from lasthop.runtime.failure import Failure
from lasthop.wire.pap.documents import Document, PapMessage
from lasthop.wire.pap.multipart import Entity
from lasthop.wire.pap.submission import PapSubmission, read_submission, write_submission
from lasthop.wire.pap.versions import SUPPORTED, Version

TIMEOUT = 60.0
"""Seconds to wait for the gateway's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Initiator:
    """A push initiator: its credentials, its gateway, and the version of PAP that it uses."""

    url: str
    version: Version = Version.V2_1
    token: str | None = None
    basic: str | None = None
    """Name and password for HTTP Basic, as NAME:PASSWORD."""
    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    timeout: float = TIMEOUT

    def ask(self, message: PapMessage, content: Entity | None = None) -> PapSubmission:
        """Send a request and return its answer; raise a `Failure` if the reply is not an answer."""
        try:
            document = Document(message, self.version, SUPPORTED, "lasthop")
            kind, body = write_submission(PapSubmission(document, content))
        except (LasthopError, ValueError) as error:
            raise Failure(f"this is not a request of PAP: {error}", exit_code=2) from None
        status, kind, body = self._post(kind, body)
        if not 200 <= status < 300:
            said = http.client.responses.get(status, "")
            raise Failure(f"{self.url} answered {status} {said}".rstrip())
        try:
            return read_submission(kind, body)
        except LasthopError as error:
            raise Failure(f"{self.url} did not answer in PAP: {error}") from None

    def _post(self, kind: str, body: bytes) -> tuple[int, str, bytes]:
        parts = urlsplit(self.url)
        headers = {"Content-Type": kind, "Accept": "application/xml, multipart/related"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        elif self.basic:
            headers["Authorization"] = "Basic " + b64encode(self.basic.encode()).decode()
        connection = self._connect()
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            answer = response.read()
        except ConnectionRefusedError:
            raise Failure(f"there is no gateway at {self.url}") from None
        except TimeoutError:
            raise Failure(f"{self.url} did not answer in {self.timeout:.0f} seconds") from None
        except (OSError, http.client.HTTPException) as error:
            said = str(error) or type(error).__name__
            raise Failure(f"lost the gateway at {self.url}: {said}") from None
        finally:
            connection.close()
        return response.status, response.headers.get("Content-Type", ""), answer

    def _connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Failure(
                f"--url must be like http://127.0.0.1:8080/pap, not {self.url!r}", exit_code=2
            )
        if parts.scheme == "http":
            return http.client.HTTPConnection(parts.hostname, parts.port, timeout=self.timeout)
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise Failure(f"cannot use these certificates: {error}", exit_code=2) from None
        return http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=self.timeout, context=context
        )
