"""New strings, bit by bit.

Each bit is predicted from none, one, two and three bytes before it. The predictions are added up
in the logistic domain, weighted by how good each kind was before (logistic mixing); all integers.
"""

from __future__ import annotations

from math import exp
from typing import Final

from lasthop.wire.weft.dense.models import Coder

_STEPS: Final = tuple(round(4096 / (1 + exp(-at / 2))) for at in range(-16, 17))
"""The logistic curve at every half from -8 to 8. None of these is near a rounding edge, so they are
the same integers everywhere; what lies between is interpolated."""
_LONGEST: Final = 2047
_SEEN: Final = 31
_RATES: Final = tuple(131072 // (2 * seen + 3) for seen in range(25))
_START: Final = 2048 << 9
"""A probability of one half in 65536ths, shifted by the five bits of how often it was seen."""
_WEIGHTS: Final = (20000, 24000, 30000, 36000)
MAX_CONTEXTS: Final = 2**15
"""Predictions that are kept, about 3 MB of them; then all of them are forgotten."""


def _squash(strength: int) -> int:
    """256ths of a logit to a probability in 4096ths."""
    at, rest = divmod(strength + 2048, 128)
    mean = (_STEPS[at] * (128 - rest) + _STEPS[at + 1] * rest + 64) >> 7
    return max(1, min(4095, mean))


def _stretched() -> tuple[int, ...]:
    """The inverse: for each probability the least strength that reaches it."""
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
    """What strings look like."""

    __slots__ = ("contexts", "weights")

    def __init__(self) -> None:
        self.contexts: dict[int, int] = {}
        """By the bytes before and the bits so far: a probability, and how often it was seen."""
        self.weights: dict[int, list[int]] = {}
        """By how often the longer contexts were seen."""

    def text(self, coder: Coder, data: bytes, most: int) -> bytes:
        """At most so many bytes, none of them zero; a zero ends them."""
        self._tidy()
        out = bytearray()
        history = 0
        for at in range(most + 1):
            letter = self._letter(coder, history, data[at] if at < len(data) else 0)
            if letter == 0:
                break
            out.append(letter)
            history = (history << 8 | letter) & 0xFFFFFF
        return bytes(out)

    def octets(self, coder: Coder, data: bytes, size: int) -> bytes:
        """So many bytes."""
        self._tidy()
        out = bytearray()
        history = 0
        for at in range(size):
            letter = self._letter(coder, history, data[at] if coder.encoding else 0)
            out.append(letter)
            history = (history << 8 | letter) & 0xFFFFFF
        return bytes(out)

    def _tidy(self) -> None:
        if len(self.contexts) > MAX_CONTEXTS:
            self.contexts.clear()
            self.weights.clear()

    def _letter(self, coder: Coder, history: int, letter: int) -> int:
        contexts = self.contexts
        find = contexts.get
        one = (history & 0xFF | 0x100) << 8
        two = (history & 0xFFFF | 0x10000) << 8
        three = (history | 0x1000000) << 8
        node = 1
        for place in range(7, -1, -1):
            m0 = find(node, _START)
            m1 = find(one | node, _START)
            m2 = find(two | node, _START)
            m3 = find(three | node, _START)
            n1, n2, n3 = m1 & _SEEN, m2 & _SEEN, m3 & _SEEN
            # What was never asked for has no opinion: the strength of one half is none.
            s0, s1, s2, s3 = (
                _STRETCH[m0 >> 9],
                _STRETCH[m1 >> 9],
                _STRETCH[m2 >> 9],
                _STRETCH[m3 >> 9],
            )
            key = min(n1, 3) | min(n2, 3) << 2 | min(n3, 3) << 4
            weights = self.weights.get(key)
            if weights is None:
                weights = self.weights[key] = list(_WEIGHTS)
            w0, w1, w2, w3 = weights
            mixed = (s0 * w0 + s1 * w1 + s2 * w2 + s3 * w3) >> 16
            if mixed > _LONGEST:
                mixed = _LONGEST
            elif mixed < -_LONGEST:
                mixed = -_LONGEST
            probability = _SQUASH[mixed + _LONGEST]
            bit = coder.bit(probability << 4, letter >> place & 1)
            error = ((bit << 12) - probability) * 6
            weights[0] = w0 + (s0 * error >> 10)
            weights[1] = w1 + (s1 * error >> 10)
            weights[2] = w2 + (s2 * error >> 10)
            weights[3] = w3 + (s3 * error >> 10)
            contexts[node] = _learned(m0, bit)
            contexts[one | node] = _learned(m1, bit)
            contexts[two | node] = _learned(m2, bit)
            contexts[three | node] = _learned(m3, bit)
            node = node << 1 | bit
        return node & 0xFF


def _learned(model: int, bit: int) -> int:
    seen = model & _SEEN
    probability = model >> 5
    probability += ((65535 if bit else 0) - probability) * _RATES[seen] >> 16
    return probability << 5 | (seen + 1 if seen < 24 else seen)
