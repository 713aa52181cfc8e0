"""The coding of new strings, bit by bit.

Each bit is predicted from none, one and two bytes before it. The predictions are added up in the
logistic domain, weighted by how good each kind was before (logistic mixing); all arithmetic is on
integers.
"""

from __future__ import annotations

from math import exp
from typing import Final

from lasthop_xml.weft.dense.models import Coder

_STEPS: Final = tuple(round(4096 / (1 + exp(-at / 2))) for at in range(-16, 17))
"""The logistic curve at every half from -8 to 8. None of these is near a rounding edge, so they are
the same integers everywhere; values in between are interpolated."""
_LONGEST: Final = 2047
_SEEN: Final = 31
_RATES: Final = tuple(131072 // (2 * seen + 3) for seen in range(25))
_START: Final = 2048 << 9
"""A probability of one half in 65536ths, shifted by the five bits that count how often it was
seen."""
_WEIGHTS: Final = (22000, 30000, 40000)
_SOME: Final = (0, 1, 2, *(3,) * 22)
_NEXT: Final = (*range(1, 25), 24)
MAX_CONTEXTS: Final = 2**15
"""The largest number of predictions that are kept, about 3 MB of them; above it, all are
forgotten."""


def _squash(strength: int) -> int:
    """Return the probability in 4096ths of a logit in 256ths."""
    at, rest = divmod(strength + 2048, 128)
    mean = (_STEPS[at] * (128 - rest) + _STEPS[at + 1] * rest + 64) >> 7
    return max(1, min(4095, mean))


def _stretched() -> tuple[int, ...]:
    """Return the inverse of `_squash`: for each probability the least logit that reaches it."""
    found = []
    strength = -_LONGEST
    for probability in range(4096):
        while strength < _LONGEST and _SQUASH[strength + _LONGEST] < probability:
            strength += 1
        found.append(strength)
    return tuple(found)


_SQUASH: Final = tuple(_squash(strength) for strength in range(-_LONGEST, _LONGEST + 1))
_STRETCH: Final = _stretched()


class Letters:
    """Predictions of the bytes of strings, which learn from the strings that are coded."""

    __slots__ = ("contexts", "weights")

    def __init__(self) -> None:
        self.contexts: dict[int, int] = {}
        """Probabilities and how often each was used, by the bytes before the present byte and the
        bits of it that are known."""
        self.weights: dict[int, tuple[int, int, int]] = {}
        """The weights of the three predictions, by how often the longer contexts were seen."""

    def text(self, coder: Coder, data: bytes, most: int) -> bytes:
        """Code at most `most` bytes, none of them zero, and a zero at their end; return them."""
        self._tidy()
        out = bytearray()
        history = 0
        for at in range(most + 1):
            letter = self._letter(coder, history, data[at] if at < len(data) else 0)
            if letter == 0:
                break
            out.append(letter)
            history = (history << 8 | letter) & 0xFFFF
        return bytes(out)

    def octets(self, coder: Coder, data: bytes, size: int) -> bytes:
        """Code exactly `size` bytes, and return them."""
        self._tidy()
        out = bytearray()
        history = 0
        for at in range(size):
            letter = self._letter(coder, history, data[at] if coder.encoding else 0)
            out.append(letter)
            history = (history << 8 | letter) & 0xFFFF
        return bytes(out)

    def _tidy(self) -> None:
        if len(self.contexts) > MAX_CONTEXTS:
            self.contexts.clear()
            self.weights.clear()

    def _letter(self, coder: Coder, history: int, letter: int) -> int:
        contexts, mixers, code = self.contexts, self.weights, coder.bit
        find = contexts.get
        one = (history & 0xFF | 0x100) << 8
        two = (history | 0x10000) << 8
        node = 1
        for place in range(7, -1, -1):
            key1, key2 = one | node, two | node
            m0, m1, m2 = find(node, _START), find(key1, _START), find(key2, _START)
            n0, n1, n2 = m0 & _SEEN, m1 & _SEEN, m2 & _SEEN
            p0, p1, p2 = m0 >> 5, m1 >> 5, m2 >> 5
            # A context that was never seen has no influence: the strength of one half is zero.
            s0, s1, s2 = _STRETCH[p0 >> 4], _STRETCH[p1 >> 4], _STRETCH[p2 >> 4]
            key = _SOME[n1] | _SOME[n2] << 2
            w0, w1, w2 = mixers.get(key, _WEIGHTS)
            mixed = (s0 * w0 + s1 * w1 + s2 * w2) >> 16
            if mixed > _LONGEST:
                mixed = _LONGEST
            elif mixed < -_LONGEST:
                mixed = -_LONGEST
            probability = _SQUASH[mixed + _LONGEST]
            bit = code(probability << 4, letter >> place & 1)
            target = 65535 if bit else 0
            error = ((bit << 12) - probability) * 6
            mixers[key] = (
                w0 + (s0 * error >> 10),
                w1 + (s1 * error >> 10),
                w2 + (s2 * error >> 10),
            )
            contexts[node] = p0 + ((target - p0) * _RATES[n0] >> 16) << 5 | _NEXT[n0]
            contexts[key1] = p1 + ((target - p1) * _RATES[n1] >> 16) << 5 | _NEXT[n1]
            contexts[key2] = p2 + ((target - p2) * _RATES[n2] >> 16) << 5 | _NEXT[n2]
            node = node << 1 | bit
        return node & 0xFF
