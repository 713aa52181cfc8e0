"""`docs/event-log.md` is true: the schema has these fields, and a gateway writes these events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from lasthop.eventlog.check import ENDS, LIFE
from lasthop.eventlog.exporter import Exporter
from lasthop.events import SCHEMA_VERSION, Event, Kind
from tests.eventlog.rehearsal import busy_day

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "event-log.md").read_text()

OF_EVERY_EVENT = {"v", "gw", "boot", "n", "t", "kind"}
OF_A_DELIVERY = {"app", "dev", "dn", "msg", "prev", "state", "reason"}
OF_A_DEVICE = {"app", "dev", "dn"}


class Row(NamedTuple):
    """A line of a table: its first cell, the names in the second, the text of the third."""

    name: str
    reserved: bool
    second: str
    text: str

    @property
    def fields(self) -> set[str]:
        return set(re.findall(r"`(\w+)`", self.second))


def table(heading: str) -> Iterator[Row]:
    """The rows of all tables under a heading."""
    section = DOCUMENT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for name, second, text in re.findall(r"^\| (\S+) \|(.*?)\| (.*) \|$", section, re.MULTILINE):
        if name.strip("*").startswith("`"):
            yield Row(name.strip("*`"), name.startswith("*"), second, text)


def written_by_core() -> set[str]:
    """The kinds that are mentioned where events are made."""
    source = "".join(path.read_text() for path in (ROOT / "src/lasthop/core").rglob("*.py"))
    return {Kind[name].value for name in re.findall(r"\bKind\.([A-Z_]+)", source) if name in KINDS}


KINDS = {kind.name for kind in Kind}
ROWS = {row.name: row for row in table("Kinds")}


def test_every_field_is_documented_with_its_default() -> None:
    documented = [(row.name, row.second.strip().strip("`")) for row in table("Lines")]
    fields = msgspec.structs.fields(Event)
    assert documented == [
        (
            field.name,
            "always there" if field.required else msgspec.json.encode(field.default).decode(),
        )
        for field in fields
    ]


def test_every_kind_is_documented_once() -> None:
    assert [row.name for row in table("Kinds")] == [kind.value for kind in Kind]


def test_kinds_carry_fields_that_exist() -> None:
    for row in ROWS.values():
        assert row.fields <= set(Event.__struct_fields__)


def test_ends_are_called_ends() -> None:
    assert {row.name for row in ROWS.values() if row.text.startswith("end: ")} == ENDS


def test_a_kind_is_reserved_as_long_as_core_does_not_write_it() -> None:
    assert {row.name for row in ROWS.values() if not row.reserved} == written_by_core()


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """What a gateway wrote, as any tool reads it."""
    log = tmp_path_factory.mktemp("log")
    day = busy_day()
    Exporter(log, day.store, confirm=day.store.exported).finish(day.now)
    files = sorted(log.glob("date=*/*.jsonl"), key=lambda path: path.name)
    return [line for path in files for line in path.read_bytes().splitlines()]


def test_the_day_shows_every_kind_that_is_written(lines: list[bytes]) -> None:
    seen = {msgspec.json.decode(line)["kind"] for line in lines}
    assert seen == {row.name for row in ROWS.values() if not row.reserved}


def test_a_gateway_writes_what_is_documented_and_nothing_else(lines: list[bytes]) -> None:
    for line in lines:
        event = msgspec.json.decode(line)
        kind = event["kind"]
        allowed = ROWS[kind].fields | OF_EVERY_EVENT
        if kind in LIFE:
            allowed |= OF_A_DELIVERY
            wanted = OF_EVERY_EVENT | {"app", "dev", "dn", "msg", "state"}
            assert (kind == Kind.ACCEPTED) == ("prev" not in event)
        else:
            wanted = OF_EVERY_EVENT | (OF_A_DEVICE if "dev" in event else set())
            allowed |= wanted
        assert wanted <= set(event) <= allowed, line


def test_every_line_is_strictly_of_the_schema(lines: list[bytes]) -> None:
    class Strict(Event, forbid_unknown_fields=True):
        """Takes nothing that is not in the schema."""

    for n, line in enumerate(lines):
        event = msgspec.json.decode(line, type=Strict)
        assert (event.v, event.n) == (SCHEMA_VERSION, n)
        assert event.kind in list(Kind)
        assert all(
            -1 <= value < 2**63
            for value in msgspec.json.decode(line).values()
            if type(value) is int
        )


def test_no_line_shows_a_body(lines: list[bytes]) -> None:
    assert not any(b"hello" in line or b"battery" in line for line in lines)
