"""The addresses of a running gateway, and the names of files in its data directory."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from lasthop.runtime.failure import Failure

LOG_DIRECTORY = "log"
LAKE_DIRECTORY = "lake"
POLICY_DIRECTORY = "policies"
PORTS_FILE = "ports.json"


class Places(msgspec.Struct, kw_only=True):
    """The addresses of a running gateway; also the content of `ports.json` in its data
    directory."""

    pid: int
    http: str
    tcp: str
    websocket: str | None
    data: str
    first_start: bool
    open_house: bool
    requests: str | None = None
    beep: str | None = None
    seqpacket: str | None = None

    def write(self) -> None:
        """Write `ports.json` into the data directory in one step, so that a reader never sees an
        incomplete file."""
        path = Path(self.data) / PORTS_FILE
        partial = path.with_name(f".{PORTS_FILE}.{self.pid}")
        partial.write_bytes(msgspec.json.encode(self) + b"\n")
        partial.replace(path)

    def remove(self) -> None:
        """Remove `ports.json`, because the gateway has stopped."""
        (Path(self.data) / PORTS_FILE).unlink(missing_ok=True)


def find(data: Path) -> Places | None:
    """Return the addresses of the gateway that runs on this data directory, or None if no gateway
    runs on it."""
    if not data.is_dir():
        raise Failure(f"there is no data directory {data}")
    try:
        places = msgspec.json.decode((data / PORTS_FILE).read_bytes(), type=Places)
    except (OSError, msgspec.DecodeError):
        return None
    try:
        os.kill(places.pid, 0)
    except ProcessLookupError:
        return None  # The gateway was killed, and its file stayed.
    except PermissionError:
        pass
    return places
