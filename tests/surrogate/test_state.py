"""A surrogate's state: a mapping whose changes count only if the input does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from lasthop.surrogate.state import (
    ENTRY_COST,
    State,
    StateLedger,
    StateTooLarge,
    apply,
    entry_size,
    size_after,
)

names = st.sampled_from(["a", "b", "cc", "ä"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
steps = st.lists(
    st.tuples(st.sampled_from(["set", "delete", "append"]), names, values)
    | st.tuples(st.sampled_from(["keep", "forget"]), st.just(""), st.none()),
    max_size=30,
)


@given(steps)
def test_it_is_a_mapping_that_can_be_taken_back(steps: list[tuple[str, str, Any]]) -> None:
    kept: dict[str, bytes] = {}
    ledger = StateLedger(kept, limit=1 << 30)
    state = State(ledger, "u")
    model: dict[str, Any] = {}
    durable: dict[str, Any] = {}
    for what, name, value in steps:
        if what == "set":
            state[name] = value
            model[name] = value
        elif what == "delete":
            assert (name in state) == (name in model)
            if name in model:
                del state[name], model[name]
            else:
                with pytest.raises(KeyError):
                    del state[name]
        elif what == "append":
            if isinstance(model.get(name), list):
                model[name] = [*model[name], 1]
                state[name].append(1)
        elif what == "keep":
            changes = ledger.changes()
            ledger.keep(changes)
            apply(kept, changes)
            durable = msgspec.msgpack.decode(msgspec.msgpack.encode(model))
            model = dict(durable)
        else:
            ledger.forget()
            model = msgspec.msgpack.decode(msgspec.msgpack.encode(durable))
        assert dict(state) == model
        assert len(state) == len(model)
    # Another worker that starts from what was kept sees what counted.
    ledger.forget()
    assert dict(State(StateLedger(kept, limit=1 << 30), "u")) == durable == dict(state)


def test_only_what_differs_is_a_change() -> None:
    ledger = StateLedger({}, limit=1000)
    state = State(ledger, "u")
    state["a"] = [1]
    state["b"] = {"x": 1}
    ledger.keep(ledger.changes())
    assert state["a"] == [1]
    state["b"]["x"] = 1
    assert ledger.changes() == {}
    state["a"].append(2)
    assert list(ledger.changes()) == ["ua"]


def test_a_new_entry_that_is_deleted_again_leaves_no_trace() -> None:
    ledger = StateLedger({}, limit=1000)
    state = State(ledger, "u")
    state["a"] = 1
    del state["a"]
    assert ledger.changes() == {}


def test_it_has_a_limit() -> None:
    ledger = StateLedger({}, limit=100)
    state = State(ledger, "u")
    state["a"] = bytes(200)
    with pytest.raises(StateTooLarge, match=r"the state would have \d+ bytes; the limit is 100"):
        ledger.changes()
    state["a"] = bytes(20)
    ledger.keep(ledger.changes())
    assert not state.has_room(50)


def test_parts_do_not_see_each_other() -> None:
    ledger = StateLedger({}, limit=1000)
    mine, theirs = State(ledger, "u"), State(ledger, "c")
    mine["a"] = 1
    assert "a" not in theirs
    assert list(theirs) == []


def test_names_are_text() -> None:
    state = State(StateLedger({}, limit=1000), "u")
    with pytest.raises(TypeError, match="names of the state must be text, not int"):
        state[1] = 2  # type: ignore[index]


def test_what_msgpack_does_not_have_is_refused_with_its_type() -> None:
    ledger = StateLedger({}, limit=1000)
    State(ledger, "u")["a"] = object()
    with pytest.raises(TypeError, match="object"):
        ledger.changes()


@given(st.dictionaries(names, st.binary(min_size=1)), st.dictionaries(names, st.binary()))
def test_sizes_add_up(entries: dict[str, bytes], changes: dict[str, bytes]) -> None:
    size = sum(entry_size(name, value) for name, value in entries.items())
    expected = size_after(entries, size, changes)
    apply(entries, changes)
    assert expected == sum(len(n) + len(v) + ENTRY_COST for n, v in entries.items())
