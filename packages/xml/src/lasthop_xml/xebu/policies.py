"""Which token a new string gets when all are taken.

Only the serializer has a policy: it writes every token that it assigns, so the other end follows
whatever is decided here (section 5.3.2). A policy sees token numbers, not strings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from lasthop_xml.xebu.layout import TOKENS


class Policy(ABC):
    """Replacement in one table of TOKENS tokens, all of them free at first."""

    __slots__ = ("used",)

    used: Callable[[int], None]
    """Tell that the string of a token was sent again. A slot, not a method: it is called for every
    string of every message, and a policy may put a built-in function here."""

    @abstractmethod
    def choose(self) -> int:
        """The token for a new string; what it stood for is forgotten."""

    def keep(self, token: int) -> None:
        """Tell that a token stands for something that is known beforehand."""
        self.used(token)

    def next_message(self) -> None:  # noqa: B027 - most policies need not know
        """Tell that a message has ended."""

    @abstractmethod
    def state(self) -> list[list[int]]:
        """All that has to be remembered across a restart."""

    @abstractmethod
    def restore(self, state: Sequence[Sequence[int]]) -> None:
        """Go on from what `state` returned; ValueError if it cannot have."""


class Lru(Policy):
    """Replace what was not used for the longest time: what the thesis measured."""

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
            raise ValueError("not an order of all tokens")
        self._take(order)


class Split(Policy):
    """Persistent and temporary tokens: a flood of new strings cannot displace the common ones.

    The thesis considers this (section 5.3.2, after ARC). A token starts as temporary and becomes
    persistent when a later message uses it again; the persistent token that was unused for longest
    goes back when there are too many. Only temporary ones are replaced, oldest use first.
    """

    __slots__ = ("_message", "_persistent", "_seen", "_temporary", "most_persistent")

    def __init__(self, most_persistent: int = TOKENS * 3 // 4) -> None:
        # A quarter for newcomers: a message has about twenty, so they live for several messages.
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
            raise ValueError("not a split of all tokens")
        if len(persistent) > self.most_persistent or self.most_persistent >= TOKENS:
            raise ValueError("too many persistent tokens")
        self._temporary = OrderedDict.fromkeys(temporary)
        self._persistent = OrderedDict.fromkeys(persistent)
        self._seen = list(seen)
        self._message = message


PolicyFactory: TypeAlias = Callable[[], Policy]

POLICIES: Final[Mapping[str, PolicyFactory]] = {"lru": Lru, "split": Split}
"""By the names that settings and command lines use."""
