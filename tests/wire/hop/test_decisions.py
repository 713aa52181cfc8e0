"""Decisions about groups: one vector, both directions, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lasthop.errors import MalformedFrame
from lasthop.wire.hop.decisions import (
    MAX_NAME,
    GroupDecision,
    GroupVerdict,
    decode_decision,
    encode_decision,
)

VECTORS = json.loads(Path("vectors/hop/decisions.json").read_text())


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_a_decision_has_one_form(case: dict[str, Any]) -> None:
    decision = GroupDecision(GroupVerdict[case["verdict"]], case.get("by", ""))
    assert encode_decision(decision).hex() == case["bytes"]
    assert decode_decision(bytes.fromhex(case["bytes"])) == decision


def test_every_verdict_has_a_vector() -> None:
    assert {case["verdict"] for case in VECTORS["cases"]} == {
        verdict.name for verdict in GroupVerdict
    }


@pytest.mark.parametrize("case", VECTORS["errors"], ids=lambda case: case["name"])
def test_what_is_no_decision_is_refused(case: dict[str, str]) -> None:
    with pytest.raises(MalformedFrame, match=case["detail"]):
        decode_decision(bytes.fromhex(case["bytes"]))


def test_a_name_has_an_end() -> None:
    with pytest.raises(MalformedFrame, match="a decision must be one byte and a name"):
        decode_decision(b"\x03" + b"x" * (MAX_NAME + 1))


@given(st.sampled_from(GroupVerdict), st.text(max_size=50))
def test_decisions_come_back(verdict: GroupVerdict, by: str) -> None:
    decision = GroupDecision(verdict, by)
    assert decode_decision(encode_decision(decision)) == decision


@given(st.binary(max_size=20))
def test_anything_else_is_the_peers_fault(body: bytes) -> None:
    try:
        decision = decode_decision(body)
    except MalformedFrame:
        return
    assert encode_decision(decision) == body
