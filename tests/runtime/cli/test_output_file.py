"""The file and the inbox agree on what was written, wherever a crash or an undo came."""

from __future__ import annotations

from pathlib import Path

import pytest

from lasthop.runtime.cli.output_file import OutputFile
from lasthop.runtime.failure import Failure


class Notes(dict[str, bytes]):
    """An inbox's notes; a copy is what a transaction that is undone leaves."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "output"


@pytest.mark.parametrize("sync", [False, True])
def test_lines_follow_each_other(path: Path, sync: bool) -> None:
    notes = Notes()
    file = OutputFile(path, notes, sync=sync)
    file.append(b"one\n", notes)
    file.append(b"two\n", notes)
    file.close()
    assert path.read_bytes() == b"one\ntwo\n"


def test_what_was_written_and_not_committed_is_cut_off_at_the_start(path: Path) -> None:
    committed = Notes()
    file = OutputFile(path, committed)
    file.append(b"one\n", committed)
    file.append(b"two\n", Notes(committed))
    file.close()
    assert path.read_bytes() == b"one\ntwo\n"
    OutputFile(path, committed).close()
    assert path.read_bytes() == b"one\n"


def test_a_line_that_was_undone_gives_its_place_to_the_next(path: Path) -> None:
    notes = Notes()
    file = OutputFile(path, notes)
    file.append(b"one\n", notes)
    file.append(b"a longer line that is undone\n", Notes(notes))
    file.append(b"two\n", notes)
    file.close()
    assert path.read_bytes() == b"one\ntwo\n"


def test_a_file_that_lost_lines_is_not_written_to(path: Path) -> None:
    notes = Notes()
    file = OutputFile(path, notes)
    file.append(b"one\n", notes)
    file.close()
    path.write_bytes(b"on")
    with pytest.raises(Failure, match="has 2 bytes, but 4 were written"):
        OutputFile(path, notes)
