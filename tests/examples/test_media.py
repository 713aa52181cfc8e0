"""The media service: many people see photos, and the phone is asked once."""

from __future__ import annotations

import pytest

from examples.media.__main__ import scenario


@pytest.mark.timeout(120)
async def test_five_people_see_photos_and_the_phone_is_asked_once() -> None:
    said: list[str] = []
    seen = await scenario(said.append)
    assert seen.news == ["paris-1", "paris-2"]
    # Before and after the second photo; the last one while the phone was off.
    assert seen.lists == ["paris-1"] * 5 + ["paris-1\nparis-2"] * 2
    assert seen.photos == ["a view of paris"] * 6
    assert seen.asked == {"list": 2, "photo": 1, "take": 1}
    assert len(said) == 4
