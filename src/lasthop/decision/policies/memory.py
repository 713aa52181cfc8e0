"""What a policy has learned, as plain values: stored, and given back to it after a restart.

A policy is a tree of numbers, lists and small objects. Its memory is that tree by attribute name,
so a plug-in need not know about it. A value is dropped if a newer version of the policy has no
attribute for it; a new attribute starts as in a new policy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from lasthop.decision.policies.policy import Policy

PLAIN = (int, float, str, bool, type(None))

GIVEN = "tuning"
"""The attribute of a policy that holds its chosen parameters: they were not learned, so they are
not stored."""


def memory_of(policy: Policy) -> dict[str, Any]:
    """Return everything that the policy has learned so far."""
    return _of_object(policy)


def recall(policy: Policy, memory: dict[str, Any]) -> None:
    """Give a new policy what an earlier policy of the same class had learned."""
    _into_object(policy, memory)


def _names(value: object) -> Iterator[str]:
    for kind in type(value).__mro__:
        yield from getattr(kind, "__slots__", ())
    yield from getattr(value, "__dict__", {})


def _of_object(value: object) -> dict[str, Any]:
    return {name: _of(getattr(value, name)) for name in _names(value) if name != GIVEN}


def _of(value: Any) -> Any:
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, list | tuple | deque):
        return [_of(item) for item in value]
    return _of_object(value)


def _into_object(value: object, memory: dict[str, Any]) -> None:
    for name in _names(value):
        if name != GIVEN and name in memory:
            setattr(value, name, _back(getattr(value, name), memory[name]))


def _back(fresh: Any, memory: Any) -> Any:
    """Return a stored value in the shape of the attribute that it replaces."""
    if isinstance(fresh, deque):
        return deque((_row(item) for item in memory), maxlen=fresh.maxlen)
    if isinstance(fresh, list):
        return [
            _back(fresh[place], item) if place < len(fresh) else item
            for place, item in enumerate(memory)
        ]
    if isinstance(memory, dict):
        _into_object(fresh, memory)
        return fresh
    return memory


def _row(item: Any) -> Any:
    return tuple(item) if isinstance(item, list) else item
