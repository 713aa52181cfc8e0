"""The fuzzer for machines without atheris finds what lies behind several steps and keeps little.

About `tests/fuzz/`.
"""

from __future__ import annotations

from pathlib import Path

from lasthop.errors import HopError
from tests.fuzz import guided
from tests.fuzz.guided import GuidedFuzzer, corpus, keep, smallest

HERE = ["tests.fuzz.test_guided"]


def locked(data: bytes) -> bool:
    """A door with three locks, of which each shows whether it is open."""
    if data[:1] != b"H":
        return False
    if data[1:2] != b"o":
        return False
    if data[2:3] != b"P":
        return False
    raise HopError("it is open")


def test_step_by_step_it_comes_to_where_chance_alone_would_not() -> None:
    fuzzer = GuidedFuzzer(locked, HERE, seed=1)
    found: list[bytes] = []
    try:
        for new in fuzzer.run([b"xxx"], seconds=60):
            found.append(new)
    except HopError:
        assert fuzzer.failing[:3] == b"HoP"
    assert len(found) == 2
    assert fuzzer.executions < 100_000


def test_of_what_reaches_the_same_the_smallest_is_kept() -> None:
    inputs = [b"x" * 50, b"H" * 40, b"Hoooo", b"H", b"Hollow"]
    assert smallest(locked, HERE, inputs) == [b"H", b"Hoooo", b"x" * 50]
    assert smallest(locked, HERE, inputs, beyond=[b"x"]) == [b"H", b"Hoooo"]


def test_a_corpus_is_written_and_read_again(tmp_path: Path) -> None:
    keep(tmp_path / "hop", [b"one", b"two"])
    keep(tmp_path / "hop", [b"two", b"three"])
    assert sorted(corpus(tmp_path / "hop")) == [b"three", b"two"]
    assert corpus(tmp_path / "nothing") == []
    assert guided.SMALL <= guided.LONGEST
