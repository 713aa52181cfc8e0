"""The files of the pages, read once, with their content types and ETags."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy: nothing from other hosts, and no inline scripts, so that a message's
text which ends up in a page is never run."""

HEADERS = {"content-security-policy": POLICY}

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

STATIC = Path(__file__).with_name("static")

SDK = STATIC / "sdk"
"""The JavaScript SDK; in a checkout this is a link to its sources."""


@dataclass(frozen=True, slots=True)
class ServedFile:
    """One file of the pages, ready to be sent."""

    body: bytes
    content_type: str
    etag: str

    def response(self, known: bytes = b"") -> Response:
        """Return the file, or a 304 if the ETag that the browser knows is this file's."""
        headers = {**HEADERS, "etag": self.etag, "cache-control": "no-cache"}
        if known.decode("latin-1") == self.etag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, headers=headers, media_type=self.content_type)


class ServedFiles:
    """All files of the pages, by the path under which they are served."""

    def __init__(self, *, websocket: str) -> None:
        """`websocket` is the path at which devices connect, which the device page needs."""
        self._files: dict[str, ServedFile] = {}
        self._websocket = websocket.encode()
        self._add(STATIC, "/dashboard/static")
        self._add(SDK, "/sdk")

    def _add(self, folder: Path, below: str) -> None:
        for path in sorted(folder.rglob("*")):
            content_type = TYPES.get(path.suffix)
            if content_type is not None and (folder == SDK or SDK not in path.parents):
                body = path.read_bytes().replace(b"{{websocket}}", self._websocket)
                etag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
                name = path.relative_to(folder).as_posix()
                self._files[f"{below}/{name}"] = ServedFile(body, content_type, etag)

    def find(self, path: str) -> ServedFile | None:
        """Return the file that is served under a path, or None."""
        return self._files.get(path)

    def page(self, name: str) -> ServedFile:
        """Return the HTML file of the named page."""
        return self._files[f"/dashboard/static/{name}.html"]
