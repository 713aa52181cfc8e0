"""The pages' own files, read once: with types, and marks by which browsers know them again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing from elsewhere, and no script that stands in a page: text of a message that finds its way
into one is never run."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    # With "no-referrer" browsers would not say either where a form was sent from.
    "referrer-policy": "same-origin",
}

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

STATIC = Path(__file__).with_name("static")

SDK = STATIC / "sdk"
"""The JavaScript SDK: in a checkout a link to where it is developed."""


@dataclass(frozen=True, slots=True)
class ServedFile:
    """One file, ready to be sent."""

    body: bytes
    content_type: str
    etag: str

    def response(self, known: bytes = b"") -> Response:
        """The file, unless the browser has this very one."""
        headers = {**HEADERS, "etag": self.etag, "cache-control": "no-cache"}
        if known.decode("latin-1") == self.etag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, headers=headers, media_type=self.content_type)


class ServedFiles:
    """All files by the path under which they are served."""

    def __init__(self, *, websocket: str) -> None:
        """`websocket` is the path at which devices connect; the device's page has to know it."""
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
        """The file that is served under a path."""
        return self._files.get(path)

    def page(self, name: str) -> ServedFile:
        """One of the pages."""
        return self._files[f"/dashboard/static/{name}.html"]
