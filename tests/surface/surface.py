"""What others rely on, line by line: wire tags, REST, settings, events, metrics and rows of the
store. A changed line is a decision; `python -m tests.surface.surface` writes it down."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from lasthop.access.rest.openapi import document
from lasthop.access.rest.operations import EXPLAIN, OPERATIONS
from lasthop.core.lifecycle import State
from lasthop.events import Event, Kind
from lasthop.message import Binding, Message, Reliability, TargetKind
from lasthop.runtime.settings.apps import NAMED, PLACEHOLDERS
from lasthop.runtime.settings.gateway import Settings
from lasthop.runtime.settings.section_lists import LISTED
from lasthop.store import commit, groups, pushes, ranked, streams, surrogates
from lasthop.store.sqlite.store import SqliteStore
from lasthop.wire.hop import fields, kinds as wire_kinds, lane_fields, layout
from lasthop.wire.hop.decisions import GroupVerdict
from lasthop.wire.hop.feeds import Why
from lasthop.wire.hop.frames import CloseCode, EndStatus, Feature, Operation

GOLDEN = Path(__file__).parent / "golden"
SOURCE = Path(__file__).parents[2] / "src" / "lasthop"


def wire() -> Iterator[str]:
    """Frames, their fields by tag, and the numbers that stand for something."""
    for name, table in sorted(vars(fields).items()):
        if isinstance(table, fields.FieldTable):
            for field in table.fields:
                known = {**vars(wire_kinds), **vars(lane_fields)}
                kinds = [k for k, kind in known.items() if kind is field.kind]
                yield f"{name} {field.tag} {field.name} {kinds[0]} {field.default!r}"
    for name, number in vars(layout).items():
        if name.isupper() and isinstance(number, int):
            yield f"layout {number:#x} {name}"
    yield from _numbers(Operation, Feature, CloseCode, EndStatus, GroupVerdict, Why)
    yield from _numbers(Binding, Reliability)


def _numbers(*enums: type[Enum]) -> Iterator[str]:
    for enum in enums:
        for member in enum:
            yield f"{enum.__name__} {member.value} {member.name}"


def rest() -> Iterator[str]:
    """Paths, methods, parameters, answers, and the fields of what is sent and answered."""
    described = document([*OPERATIONS, EXPLAIN], "0")
    for path, methods in sorted(described["paths"].items()):
        for method, operation in sorted(methods.items()):
            parameters = sorted(f"{p['in']}:{p['name']}" for p in operation.get("parameters", ()))
            answers = sorted(operation["responses"])
            yield f"{method.upper()} {path} {' '.join(parameters)} -> {' '.join(answers)}"
    for name, schema in sorted(described["components"]["schemas"].items()):
        for field, kind in sorted(schema.get("properties", {}).items()):
            needed = "required" if field in schema.get("required", ()) else "optional"
            yield f"{name}.{field} {needed} {_kind(kind)}"


def _kind(schema: dict[str, Any]) -> str:
    plain = {k: v for k, v in schema.items() if k not in {"description", "examples", "title"}}
    return json.dumps(plain, sort_keys=True)


def settings() -> Iterator[str]:
    """Every setting with its default."""
    yield from _fields("", Settings())
    for section, kind in NAMED.items():
        for name in kind.__struct_fields__:
            yield f"{section}.{PLACEHOLDERS[section]}.{name}"
    for section, listed in LISTED.items():
        for name in listed.__struct_fields__:
            yield f"{section}.{name}"


def _fields(prefix: str, value: Any) -> Iterator[str]:
    for name in value.__struct_fields__:
        found = getattr(value, name)
        if isinstance(found, msgspec.Struct):
            yield from _fields(f"{prefix}{name}.", found)
        else:
            yield f"{prefix}{name} = {found!r}"


def events() -> Iterator[str]:
    """Kinds of events, and what an event can have."""
    for kind in Kind:
        yield f"kind {kind.value}"
    for field in msgspec.structs.fields(Event):
        yield f"field {field.encode_name} {field.type}"


def metrics() -> Iterator[str]:
    """The names of all metrics."""
    names: set[str] = set()
    for path in (SOURCE / "runtime").rglob("*.py"):
        names |= set(re.findall(r'"(lasthop_[a-z_]+)"', path.read_text()))
    yield from sorted(names)


def store() -> Iterator[str]:
    """Rows in the order of their fields, states by number, and the tables of SQLite."""
    for module in (commit, groups, pushes, ranked, streams, surrogates):
        for name, row in sorted(vars(module).items()):
            here = getattr(row, "__module__", "") == module.__name__
            if here and name.endswith("Row"):
                yield f"{name}: {', '.join(row.__struct_fields__)}"
    yield f"Message: {', '.join(Message.__struct_fields__)}"
    yield from _numbers(State, TargetKind)
    with tempfile.TemporaryDirectory() as directory:
        made = SqliteStore(Path(directory))
        made.open()
        made.close()
        (path,) = Path(directory).glob("*.db")
        with sqlite3.connect(path) as connection:
            query = "SELECT sql FROM sqlite_master WHERE sql <> '' ORDER BY 1"
            for (sql,) in connection.execute(query):
                yield " ".join(sql.split())
        connection.close()


SURFACE: dict[str, Callable[[], Iterator[str]]] = {
    "wire": wire,
    "rest": rest,
    "settings": settings,
    "events": events,
    "metrics": metrics,
    "store": store,
}


def written(name: str) -> str:
    """A part of the surface as it is now."""
    return "\n".join(SURFACE[name]()) + "\n"


if __name__ == "__main__":
    for part in SURFACE:
        (GOLDEN / f"{part}.txt").write_text(written(part))
