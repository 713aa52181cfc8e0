"""What belongs to one user is nobody else's to read, whatever the umask and the directory say."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.errors import StoreError
from lasthop.policy import FORMAT, Forwarding, Lineage, Policies
from lasthop.policy.store import PolicyStore
from lasthop.private import private_directory, private_file
from lasthop.runtime.serve import running
from lasthop.runtime.settings import load
from lasthop.store.sqlite import SqliteReader, SqliteStore, restore


@pytest.fixture(autouse=True)
def nothing_masked() -> Iterator[None]:
    """New files are for everybody, unless somebody says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory that was there before, for everybody."""
    path = tmp_path / "data"
    path.mkdir(mode=0o755)
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_to_others(top: Path) -> list[str]:
    """What somebody else could read: not what lies in a directory that is closed to them."""
    found: list[str] = []
    for path in sorted(top.iterdir()):
        if path.is_dir():
            found += open_to_others(path) if mode(path) & 0o077 else []
        elif mode(path) & 0o077:
            found.append(path.name)
    return found


def policies() -> Policies:
    lineage = Lineage(code="1", made_at=1_800_000_000_000_000, note="")
    return Policies(FORMAT, "draft", lineage, default=Forwarding())


@contextmanager
def opened(directory: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(directory)) as store:
        yield store


def test_a_new_file_or_directory_is_its_owners_alone(tmp_path: Path) -> None:
    private_file(tmp_path / "file")
    private_directory(tmp_path / "a" / "b")
    assert mode(tmp_path / "file") == 0o600
    assert mode(tmp_path / "a" / "b") == 0o700


def test_one_that_was_there_is_tightened_and_keeps_its_content(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    directory = tmp_path / "directory"
    directory.mkdir()
    private_file(file)
    private_directory(directory)
    assert (mode(file), mode(directory)) == (0o600, 0o700)
    assert file.read_text() == "kept"


def test_what_cannot_be_made_is_left_to_whoever_opens_it(tmp_path: Path) -> None:
    private_file(tmp_path / "nowhere" / "file")


def test_a_store_is_private_in_a_directory_that_is_not(shared: Path) -> None:
    with opened(shared) as store:
        store.open()
        assert {path.name for path in shared.iterdir()} >= {"store.db", "store.db-wal", "lock"}
        assert open_to_others(shared) == []
    assert open_to_others(shared) == []
    assert mode(shared) == 0o755  # It is not ours.


def test_a_directory_that_a_store_makes_is_private(tmp_path: Path) -> None:
    with opened(tmp_path / "data"):
        assert mode(tmp_path / "data") == 0o700


def test_a_store_of_an_earlier_version_is_tightened_with_what_a_crash_left_beside_it(
    shared: Path,
) -> None:
    with opened(shared) as store:
        store.open()
        names = ["store.db", "store.db-wal", "store.db-shm"]
        left = {name: (shared / name).read_bytes() for name in names}
    for name, content in left.items():
        (shared / name).write_bytes(content)
        (shared / name).chmod(0o644)
    with opened(shared):
        assert open_to_others(shared) == []


def test_a_backup_and_what_is_restored_from_it_are_private(shared: Path, tmp_path: Path) -> None:
    with opened(shared), closing(SqliteReader.beside(shared)) as reader:
        reader.backup(tmp_path / "monday.db")
    restore(tmp_path / "monday.db", tmp_path / "again")
    assert mode(tmp_path / "monday.db") == 0o600
    assert mode(tmp_path / "again") == 0o700
    assert mode(tmp_path / "again" / "store.db") == 0o600


def test_an_inbox_is_private_also_one_that_was_not(tmp_path: Path) -> None:
    path = tmp_path / "inbox.db"
    SqliteInbox(path).close()
    assert open_to_others(tmp_path) == []
    path.chmod(0o644)
    with closing(SqliteInbox(path)):
        assert open_to_others(tmp_path) == []


def test_learned_policies_are_private_also_those_that_were_not(shared: Path) -> None:
    (shared / "old").mkdir()
    (shared / "old" / "policies.json").write_text("{}")
    version = PolicyStore(shared).publish(policies())
    assert mode(shared) == 0o700
    assert mode(shared / version) == 0o700
    assert mode(shared / version / "policies.json") == 0o600
    assert mode(shared / "CURRENT") == 0o600


async def test_a_gateway_leaves_nothing_open_to_others_but_where_it_is(shared: Path) -> None:
    day = shared / "log" / "date=2026-01-01"
    day.mkdir(parents=True)
    old = shared / "policies" / "old"
    old.mkdir(parents=True)
    (old / "policies.json").write_text("{}")

    def never(error: StoreError) -> None:
        raise AssertionError(error)

    listen = {"http.listen": "127.0.0.1:0", "tcp.listen": "127.0.0.1:0"}
    settings = load(options={"data": str(shared), **listen})
    async with (
        running(settings, never) as places,
        httpx.AsyncClient(base_url=places.http) as http,
    ):
        await http.post("/v1/messages", json={"topic": "news", "body": "x"})
        assert open_to_others(shared) == ["ports.json"]
    assert open_to_others(shared) == []
    segments = [path for path in (shared / "log").glob("date=*/*") if path.is_file()]
    assert segments
    assert {mode(path) for path in segments} == {0o600}
    assert {mode(path.parent) for path in segments} == {0o700}
