"""Replacement policies: which token a new string gets when all are taken.

Only the encoder has a policy: it writes every token that it assigns, so the decoder follows
whatever is decided here (thesis, section 5.3.2). A policy sees token numbers, not strings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from lasthop_xml.xebu.layout import TOKENS


class Policy(ABC):
    """A policy for the replacement of tokens in one table, all of which are free at first."""

    __slots__ = ("used",)

    used: Callable[[int], None]
    """The function to call when the string of a token is sent again. It is a slot, not a method: it
    is called for every string of every message, and a policy may put a built-in function here."""

    @abstractmethod
    def choose(self) -> int:
        """Return the token for a new string, which replaces the token's earlier string."""

    def keep(self, token: int) -> None:
        """Record that a token stands for a string that is known beforehand."""
        self.used(token)

    def next_message(self) -> None:  # noqa: B027 - most policies need not know
        """Record that a message has ended."""

    @abstractmethod
    def state(self) -> list[list[int]]:
        """Return all that has to be stored across a restart."""

    @abstractmethod
    def restore(self, state: Sequence[Sequence[int]]) -> None:
        """Continue from a value that `state` returned; raise ValueError if `state` cannot have
        returned it."""


class Lru(Policy):
    """Replaces the least recently used token, as in the measurements of the thesis."""

    __slots__ = ("_order",)

    def __init__(self) -> None:
        self._take(range(TOKENS))

    def _take(self, order: Sequence[int]) -> None:
        self._order: OrderedDict[int, None] = OrderedDict.fromkeys(order)
        self.used = self._order.move_to_end

    def choose(self) -> int:
        token = next(iter(self._order))
        self._order.move_to_end(token)
        return token

    def state(self) -> list[list[int]]:
        return [list(self._order)]

    def restore(self, state: Sequence[Sequence[int]]) -> None:
        (order,) = state
        if sorted(order) != list(range(TOKENS)):
            raise ValueError("the order must contain every token exactly once")
        self._take(order)


class Split(Policy):
    """Splits tokens into persistent and temporary ones, so that many new strings cannot displace
    common ones.

    The thesis considers this (section 5.3.2, after ARC). A token starts as temporary and becomes
    persistent when a later message uses it again; if too many are persistent, the least recently
    used of them becomes temporary. Only temporary tokens are replaced, least recently used first.
    """

    __slots__ = ("_message", "_persistent", "_seen", "_temporary", "most_persistent")

    def __init__(self, most_persistent: int = TOKENS * 3 // 4) -> None:
        # A quarter is for new strings: a message has about twenty, so they last for several
        # messages.
        self.most_persistent = most_persistent
        self._temporary: OrderedDict[int, None] = OrderedDict.fromkeys(range(TOKENS))
        self._persistent: OrderedDict[int, None] = OrderedDict()
        self._seen = [0] * TOKENS
        self._message = 1
        self.used = self._used

    def _used(self, token: int) -> None:
        if token in self._persistent:
            self._persistent.move_to_end(token)
        elif self._seen[token] == self._message:
            self._temporary.move_to_end(token)
        else:
            self._promote(token)

    def _promote(self, token: int) -> None:
        del self._temporary[token]
        self._persistent[token] = None
        if len(self._persistent) > self.most_persistent:
            oldest, _ = self._persistent.popitem(last=False)
            self._temporary[oldest] = None
            self._seen[oldest] = self._message

    def choose(self) -> int:
        token = next(iter(self._temporary))
        self._temporary.move_to_end(token)
        self._seen[token] = self._message
        return token

    def keep(self, token: int) -> None:
        self._promote(token)

    def next_message(self) -> None:
        self._message += 1

    def state(self) -> list[list[int]]:
        return [list(self._temporary), list(self._persistent), self._seen[:], [self._message]]

    def restore(self, state: Sequence[Sequence[int]]) -> None:
        temporary, persistent, seen, (message,) = state
        if sorted([*temporary, *persistent]) != list(range(TOKENS)) or len(seen) != TOKENS:
            raise ValueError("the lists must contain every token exactly once")
        if len(persistent) > self.most_persistent or self.most_persistent >= TOKENS:
            raise ValueError("there are too many persistent tokens")
        self._temporary = OrderedDict.fromkeys(temporary)
        self._persistent = OrderedDict.fromkeys(persistent)
        self._seen = list(seen)
        self._message = message


PolicyFactory: TypeAlias = Callable[[], Policy]

POLICIES: Final[Mapping[str, PolicyFactory]] = {"lru": Lru, "split": Split}
"""The policies by the names that settings and command lines use."""
