"""Limits as people write them.

About `decision/budgets.py`.
"""

from __future__ import annotations

import pytest

from lasthop.decision.budgets import parse_limits
from lasthop.errors import InvalidRequest


@pytest.mark.parametrize(
    "text",
    ["5", "5 miles per day", "5 bytes per hour", "-5 bytes per day", "5 bytes per day on mno"],
)
def test_a_limit_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="a limit must read like") as refused:
        parse_limits(f"1 bytes per day; {text}")
    assert refused.value.fields["limit"] == text


def test_limits_are_read_as_they_are_shown() -> None:
    text = (
        "5 messages per day of news+photos over mno; 7 money per month; 1 units per week over sms"
    )
    assert "; ".join(map(str, parse_limits(text))) == text
    assert parse_limits(" ; ") == ()
