"""`sdk/features.toml` is the truth about both SDKs, and complete."""

from __future__ import annotations

import pytest

from tests.sdk.features import TABLE, FeatureRow, FeatureTable, OwnNames, table, untrue


@pytest.mark.parametrize("sdk", ["python", "javascript"])
def test_every_public_name_has_its_row_and_every_yes_is_there(sdk: str) -> None:
    assert untrue(table(), sdk) == []


def test_features_are_named_once() -> None:
    names = [row.name for row in table().feature]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("sdk", ["python", "javascript"])
def test_what_is_missing_or_untrue_is_found(sdk: str) -> None:
    nothing = FeatureTable(OwnNames([], []), [])
    assert "Device.send has no row" in untrue(nothing, sdk)
    row = FeatureRow("Fly", ["Device.fly"], ["Device.fly"])
    invented = FeatureTable(OwnNames([], []), [row])
    assert "Fly: Device.fly is not there" in untrue(invented, sdk)
    lost = FeatureRow("Fly", [f"test {TABLE}: test_flying"], ["test tests/no.py: test_flying"])
    assert any("is not there" in line for line in untrue(FeatureTable(invented.own, [lost]), sdk))
    unsaid = FeatureTable(invented.own, [FeatureRow("Fly", "no", "no")])
    assert "Fly: why not?" in untrue(unsaid, sdk)
    twice = FeatureTable(
        invented.own, [FeatureRow(n, ["Device.send"], ["Device.send"]) for n in "ab"]
    )
    assert "b: Device.send stands in a too" in untrue(twice, sdk)
