"""A wanted network or bearer is found by its name, in any case."""

import pytest

from lasthop.wire.pap.bearers import BEARERS, NETWORKS, serves


@pytest.mark.parametrize("name", [*NETWORKS, *BEARERS])
def test_names_are_compared_without_case(name: str) -> None:
    assert serves(name.upper(), frozenset({name.lower()}))
    assert serves(f" {name} ", frozenset({name}))


def test_no_name_and_any_are_always_served() -> None:
    for name in (None, "", " ", "Any", "any"):
        assert serves(name, frozenset())
    assert not serves("SMS", frozenset({"GPRS"}))
