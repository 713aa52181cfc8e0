"""The fingerprint of an automaton: two bytes by which the ends of a session notice that their
schemas differ."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from lasthop_xml.xebu.omission.automaton import Automaton
from lasthop_xml.xebu.omission.states import State

SIZE = 2


def fingerprint(automaton: Automaton) -> bytes:
    """Return two bytes that are the same, in every process, for automata with the same
    behaviour."""
    digest = hashlib.sha256()
    for state in (automaton.start, *automaton.states):
        digest.update("\x1f".join(map(repr, _facts(automaton, state))).encode())
        digest.update(b"\x1e")
    return digest.digest()[:SIZE]


def _facts(automaton: Automaton, state: State) -> Iterator[object]:
    yield state.index
    yield state.ends
    yield str(state.foreseen)
    yield str(state.announcement)
    yield None if state.type is None else state.type.local
    yield None if state.text is None else state.text.index
    for name, after in state.attributes.items():
        yield *name, after.index
    yield len(state.open_attributes)
    for name, child in state.children.items():
        yield *name, child.then.index, automaton.inside(child.element).index
    for names, child in state.open_children:
        yield names, child.then.index, automaton.inside(child.element).index
