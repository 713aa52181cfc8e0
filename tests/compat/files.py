"""Where recordings are kept, and in which form."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.glob("v*") if path.is_dir())
"""Every version that was recorded, each in a folder of its own."""


def keep(path: Path, content: bytes) -> None:
    """Write a packed file: the same content makes the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def kept(path: Path) -> bytes:
    """The content of a packed file."""
    return gzip.decompress(path.read_bytes())


def keep_json(path: Path, value: Any) -> None:
    """Write a value, packed."""
    keep(path, (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode())


def kept_json(path: Path) -> Any:
    """What was written so."""
    return json.loads(kept(path))


def as_json(value: Any) -> Any:
    """What would come back of it from a file."""
    return json.loads(json.dumps(value))


def known(found: Any, recorded: Any) -> Any:
    """Of what was found, that which a recording could know: not the fields that came later."""
    if isinstance(found, dict) and isinstance(recorded, dict):
        return {name: known(found[name], recorded[name]) for name in recorded if name in found}
    if isinstance(found, list) and isinstance(recorded, list) and len(found) == len(recorded):
        return [known(one, other) for one, other in zip(found, recorded, strict=True)]
    return found


def copy_database(path: Path, scratch: Path) -> bytes:
    """An SQLite file as one without a log and without gaps."""
    scratch.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database:
        database.execute("VACUUM INTO ?", (str(scratch),))
    content = scratch.read_bytes()
    scratch.unlink()
    return content
