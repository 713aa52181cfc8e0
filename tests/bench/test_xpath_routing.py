"""The comparison of XPath routing agrees with lxml, on a few messages."""

from __future__ import annotations

import msgspec
import pytest

from bench.xpath_routing import measure, run


def test_both_find_the_same_subscriptions() -> None:
    rows = measure((20, 200), messages=4, rounds=1)
    assert [(row.workload, row.subscriptions) for row in rows] == [
        *(("selective", 20), ("selective", 200)),
        *(("broad", 20), ("broad", 200)),
    ]
    assert rows[-1].matched > 50
    assert all(row.ours > 0 and row.lxml > 0 for row in rows)


@pytest.mark.parametrize("as_json", [True, False])
def test_results_are_printed(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    assert run(sizes=(4,), messages=2, rounds=1, as_json=as_json) == 0
    said = capsys.readouterr().out
    if as_json:
        assert {row["subscriptions"] for row in msgspec.json.decode(said)} == {4}
    else:
        assert "one by one" in said
