"""Nothing that others rely on changes by accident."""

from __future__ import annotations

import difflib

import pytest

from tests.surface.surface import GOLDEN, SURFACE, written


@pytest.mark.parametrize("part", SURFACE)
def test_the_surface_is_as_it_was_decided(part: str) -> None:
    golden = (GOLDEN / f"{part}.txt").read_text().splitlines()
    changes = [
        line
        for line in difflib.unified_diff(golden, written(part).splitlines(), lineterm="", n=0)
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert not changes, (
        f"the surface {part!r} changes:\n"
        + "\n".join(changes)
        + "\nOthers rely on it. If it is meant (CHANGELOG.md says so), write it down with"
        " `python -m tests.surface.surface`."
    )
