"""The patterns of rules: `topic:news.#`, `device:*`, `group:team-*`, or `#` for everything.

A topic is matched word by word, as subscriptions are: `*` is any one word, `#` any number of words.
Any other name is matched letter by letter, and `*` is any run of letters. Words that come from a
caller's own name are taken literally, so that nobody gains a right by the name it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from lasthop.core.names import MANY, ONE
from lasthop.errors import InvalidRequest
from lasthop.message import TargetKind

EVERYTHING = "#"
MAX_PATTERN: Final = 300
"""The longest pattern in bytes: a kind, and a name of the longest topic with some room."""

KINDS = frozenset(TargetKind) - {TargetKind.PUSH, TargetKind.PUBLISHER}

Word: TypeAlias = str | bool | None
"""A word that is taken literally; None is any one word, True any number of words."""
_ONE: Final = None
_MANY: Final = True


def words_of(pattern: str, names: Mapping[str, str] | None = None) -> tuple[Word, ...]:
    """Return the words of a topic pattern. `{user}` and `{device}` stand for what `names` has under
    these names."""
    words: list[Word] = []
    for word in pattern.split("."):
        if word == ONE:
            words.append(_ONE)
        elif word == MANY:
            words.append(_MANY)
        else:
            words += _filled(word, names or {}).split(".")
    return tuple(words)


def _filled(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def covers(pattern: Sequence[Word], other: Sequence[Word]) -> bool:
    """Return whether a pattern, as it is written, stands for every topic of another one: a wildcard
    is only covered by one that is as wide."""
    reached = {0}
    for word in (*other, False):
        # `#` may stand for no word at all.
        for at in range(len(pattern)):
            if at in reached and pattern[at] is _MANY:
                reached.add(at + 1)
        if word is False:
            break
        following = {at for at in reached if at < len(pattern) and pattern[at] is _MANY}
        for at in reached:
            if at < len(pattern) and word is not _MANY and pattern[at] in (word, _ONE):
                following.add(at + 1)
        reached = following
    return len(pattern) in reached


def meets(pattern: Sequence[Word], other: Sequence[Word]) -> bool:
    """Return whether there is a topic that two patterns both stand for."""
    ways: set[tuple[int, int]] = set()
    ahead = [(0, 0)]
    while ahead:
        a, b = at = ahead.pop()
        if at in ways or a > len(pattern) or b > len(other):
            continue
        ways.add(at)
        one = pattern[a] if a < len(pattern) else False
        two = other[b] if b < len(other) else False
        if one is _MANY:
            ahead += [(a + 1, b)] + ([(a, b + 1)] if two is not False else [])
        if two is _MANY:
            ahead += [(a, b + 1)] + ([(a + 1, b)] if one is not False else [])
        if one is not False and two is not False and (one == two or one is _ONE or two is _ONE):
            ahead.append((a + 1, b + 1))
    return (len(pattern), len(other)) in ways


def fits(pieces: Sequence[str], name: str) -> bool:
    """Return whether a name consists of these pieces, in this order, with any letters between
    them."""
    first, *rest = pieces
    if not rest:
        return name == first
    last = rest.pop()
    end = len(name) - len(last)
    if not name.startswith(first) or not name.endswith(last) or end < len(first):
        return False
    at = len(first)
    for piece in rest:
        found = name.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def pieces_of(pattern: str, names: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the pieces between the `*` of a name's pattern, with a caller's names filled in."""
    return tuple(_filled(piece, names or {}) for piece in pattern.split(ONE))


class NamePattern:
    """A pattern that matches names of devices, users, groups and queues."""

    def __init__(self, pattern: str, names: Mapping[str, str]) -> None:
        self._pieces = pieces_of(pattern, names)

    def covers(self, name: str) -> bool:
        """Return whether the pattern stands for a name."""
        return fits(self._pieces, name)

    def meets(self, name: str) -> bool:
        """Return whether the pattern stands for a name, or for a part of what it stands for."""
        return self.covers(name)


class ServicePattern(NamePattern):
    """The pattern of a name with a version: all versions are one target."""

    def covers(self, name: str) -> bool:
        return super().covers(name.partition("@")[0])


class WordPattern(NamePattern):
    """The pattern of a topic, which may be compared with another pattern."""

    def __init__(self, pattern: str, names: Mapping[str, str]) -> None:
        self._words = words_of(pattern, names)

    def covers(self, name: str) -> bool:
        return covers(self._words, words_of(name))

    def meets(self, name: str) -> bool:
        return meets(self._words, words_of(name))


_PATTERNS: dict[str, type[NamePattern]] = {
    **{str(kind): NamePattern for kind in KINDS},
    TargetKind.TOPIC: WordPattern,
    TargetKind.SERVICE: ServicePattern,
}
"""How the names of each kind of target are matched."""


class TargetPattern:
    """One entry of a rule's `on`, for one caller."""

    __slots__ = ("_kind", "_name", "text")

    def __init__(self, text: str, names: Mapping[str, str] | None = None) -> None:
        self.text = text
        self._kind, _, name = text.partition(":")
        found = _PATTERNS.get(self._kind)
        self._name = None if found is None else found(name, names or {})
        """The pattern of the name; None if the entry stands for everything."""

    def covers(self, kind: str, name: str) -> bool:
        """Return whether the entry stands for a target, or for all topics of a pattern."""
        return self._name is None or (kind == self._kind and self._name.covers(name))

    def meets(self, kind: str, name: str) -> bool:
        """Return whether the entry stands for a target, or for any topic of a pattern."""
        return self._name is None or (kind == self._kind and self._name.meets(name))


def check_pattern(text: str) -> str:
    """Return an entry of `on` if it is one; otherwise raise an error."""
    kind, colon, name = text.partition(":")
    if text not in (EVERYTHING, ONE) and (not colon or kind not in KINDS):
        raise InvalidRequest(
            "a rule is on # (everything), or on KIND:NAME with one of the kinds "
            + ", ".join(sorted(KINDS)),
            on=text,
        )
    if len(text.encode()) > MAX_PATTERN or not text.isprintable() or " " in text:
        raise InvalidRequest("a rule's target is up to 300 bytes without spaces", on=text)
    if _PATTERNS.get(kind) is WordPattern and "" in name.split("."):
        raise InvalidRequest("a topic is words separated by dots", on=text)
    return text
