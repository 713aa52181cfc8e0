"""A range coder: choices with known probabilities as bytes, in nearly the fewest possible.

Both coders have the same methods, which take the choice (ignored when decoding) and return it. A
probability is that of a 1, in 65536ths. All arithmetic is on integers, so the results are the same
on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_TOP: Final = 1 << 24
_WHOLE: Final = 1 << 32


class RangeEncoder:
    """Writes choices as bytes, by their probabilities."""

    encoding = True

    __slots__ = ("_low", "_out", "_range")

    def __init__(self) -> None:
        self._low = 0
        self._range = _WHOLE - 1
        self._out = bytearray()

    def bit(self, probability: int, choice: int) -> int:
        """Write a choice of two, given the probability of 1, and return it."""
        bound = (self._range >> 16) * probability
        if choice:
            self._range = bound
        else:
            self._low += bound
            self._range -= bound
        if self._range < _TOP:
            self._shift()
        return choice

    def one_of(self, weights: Sequence[int], total: int, choice: int) -> int:
        """Write a choice of several, by its index; `total` is the sum of the weights."""
        step = self._range // total
        self._low += step * sum(weights[:choice])
        self._range = step * weights[choice]
        if self._range < _TOP:
            self._shift()
        return choice

    def bits(self, count: int, choice: int) -> int:
        """Write a number of `count` bits, all values of which are equally likely."""
        while count > 16:
            count -= 16
            self._uniform(16, choice >> count & 0xFFFF)
        self._uniform(count, choice & (1 << count) - 1)
        return choice

    def _uniform(self, count: int, choice: int) -> None:
        step = self._range >> count
        self._low += step * choice
        self._range = step
        if step < _TOP:
            self._shift()

    def _shift(self) -> None:
        low, span, out = self._low, self._range, self._out
        if low >= _WHOLE:
            low -= _WHOLE
            self._carry()
        while span < _TOP:
            out.append(low >> 24)
            low = low << 8 & _WHOLE - 1
            span <<= 8
        self._low, self._range = low, span

    def _carry(self) -> None:
        out = self._out
        at = len(out) - 1
        while out[at] == 0xFF:
            out[at] = 0
            at -= 1
        out[at] += 1

    def finish(self) -> bytes:
        """Return all bytes: the fewest that lie within the range, without zeros at their end."""
        low, span = self._low, self._range
        value = low
        for size in range(4):
            rest = (1 << 32 - 8 * size) - 1
            rounded = low + rest & ~rest
            if rounded < low + span:
                value = rounded
                break
        if value >= _WHOLE:
            value -= _WHOLE
            self._carry()
        self._out += value.to_bytes(4, "big")
        return bytes(self._out.rstrip(b"\0"))


class RangeDecoder:
    """Reads choices from bytes, by their probabilities; bytes missing at the end count as zeros."""

    encoding = False

    __slots__ = ("_code", "_data", "_pos", "_range")

    def __init__(self, data: bytes, start: int) -> None:
        self._data = data
        self._pos = start + 4
        self._code = int.from_bytes(data[start : start + 4].ljust(4, b"\0"), "big")
        self._range = _WHOLE - 1

    def bit(self, probability: int, _choice: int) -> int:
        bound = (self._range >> 16) * probability
        if self._code < bound:
            self._range = bound
            choice = 1
        else:
            self._code -= bound
            self._range -= bound
            choice = 0
        if self._range < _TOP:
            self._shift()
        return choice

    def one_of(self, weights: Sequence[int], total: int, _choice: int) -> int:
        step = self._range // total
        # A damaged message can point past the last weight.
        rest = min(self._code // step, total - 1)
        below = 0
        choice = 0
        for weight in weights:
            if rest < below + weight:
                break
            below += weight
            choice += 1
        self._code -= step * below
        self._range = step * weights[choice]
        if self._range < _TOP:
            self._shift()
        return choice

    def bits(self, count: int, _choice: int) -> int:
        choice = 0
        while count > 16:
            count -= 16
            choice = choice << 16 | self._uniform(16)
        return choice << count | self._uniform(count)

    def _uniform(self, count: int) -> int:
        step = self._range >> count
        choice = min(self._code // step, (1 << count) - 1)
        self._code -= step * choice
        self._range = step
        if step < _TOP:
            self._shift()
        return choice

    def _shift(self) -> None:
        while self._range < _TOP:
            pos = self._pos
            byte = self._data[pos] if pos < len(self._data) else 0
            self._code = (self._code << 8 | byte) & _WHOLE - 1
            self._range <<= 8
            self._pos = pos + 1
