"""Subscriptions to many topics at once: `*` stands for one word, `#` for any number, none included.

The patterns are a tree of words, in which a topic is followed along all branches that fit. The cost
depends on the branches that fit, not on how many patterns there are.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from lasthop.core.names import MANY, ONE

T = TypeVar("T")


def is_pattern(topic: str) -> bool:
    """Return whether a subscription's topic is a pattern, which stands for more than one topic."""
    return ONE in topic or MANY in topic


class _Node(Generic[T]):
    __slots__ = ("here", "next")

    def __init__(self) -> None:
        self.next: dict[str, _Node[T]] = {}
        self.here: dict[int, T] = {}


class PatternTree(Generic[T]):
    """Patterns with their subscribers, each of whom has a number."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()
        self._count = 0

    def __len__(self) -> int:
        """Return the number of subscriptions in the tree."""
        return self._count

    def add(self, pattern: str, number: int, subscriber: T) -> bool:
        """Add a subscription; return False if it exists already."""
        node = self._root
        for word in pattern.split("."):
            node = node.next.setdefault(word, _Node())
        if number in node.here:
            return False
        node.here[number] = subscriber
        self._count += 1
        return True

    def remove(self, pattern: str, number: int) -> bool:
        """Remove a subscription, and the nodes that no other subscription needs; return False if
        there was none."""
        path = [self._root]
        words = pattern.split(".")
        for word in words:
            following = path[-1].next.get(word)
            if following is None:
                return False
            path.append(following)
        if path[-1].here.pop(number, None) is None:
            return False
        self._count -= 1
        for word, parent, node in zip(reversed(words), path[-2::-1], path[:0:-1], strict=True):
            if node.here or node.next:
                break
            del parent.next[word]
        return True

    def match(self, topic: str) -> dict[int, T]:
        """Return the subscribers with a pattern that fits a topic, each once, by number."""
        found: dict[int, T] = {}
        words = topic.split(".")
        # Several `#` reach the same node in many ways; it is visited once, or the cost would
        # explode.
        seen: set[tuple[int, int]] = set()
        open_: list[tuple[_Node[T], int]] = [(self._root, 0)]
        while open_:
            node, at = open_.pop()
            if (id(node), at) in seen:
                continue
            seen.add((id(node), at))
            many = node.next.get(MANY)
            if many is not None:
                open_ += [(many, then) for then in range(at, len(words) + 1)]
            if at == len(words):
                found.update(node.here)
                continue
            for word in (words[at], ONE):
                following = node.next.get(word)
                if following is not None:
                    open_.append((following, at + 1))
        return dict(sorted(found.items()))
