"""The social network: everyone, some, followers, and asking around."""

from __future__ import annotations

import pytest

from examples.social.__main__ import NAMES, scenario


@pytest.mark.timeout(120)
async def test_four_friends_hear_what_is_for_them() -> None:
    said: list[str] = []
    heard = await scenario(said.append)
    assert heard.places == {name: {"anna": "Oslo", "bert": "Bergen"} for name in NAMES}
    wall = ["bert: at the wall at six"]
    assert heard.notes == {"anna": wall, "bert": wall, "cleo": wall, "dora": ["anna: new shoes"]}
    assert heard.outcome == "released"
    assert heard.answers.pop("anna") == "yes"
    assert heard.answers.pop("bert") == "no"
    assert set(heard.answers) <= {"cleo"}
    assert heard.missing == ("dora",)
    assert len(said) == 4
