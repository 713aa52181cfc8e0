"""The distributions that a trace draws thousands of numbers from.

They return the same numbers as those of the standard library for the same stream, so that a seed
means the same with and without the compiled build; here they are a few operations without a call in
between.
"""

from __future__ import annotations

from collections.abc import Callable
from math import cos, e, exp, log, pow, sin, sqrt, tau  # noqa: A004 the built-in one is not sure of a float
from random import Random


def exponential(random: Callable[[], float]) -> float:
    """Return an exponentially distributed number with a mean of one."""
    return -log(1.0 - random())


def gamma(stream: Random, shape: float, scale: float) -> float:
    """Return a gamma-distributed number with a mean of `shape * scale`. Shapes below one, the wide
    ones that outages have, use rejection from an exponential tail and a power near zero (Ahrens and
    Dieter, 1974)."""
    if shape >= 1.0:
        return stream.gammavariate(shape, scale)
    random = stream.random
    edge = (e + shape) / e
    while True:
        area, chance = edge * random(), random()
        if area <= 1.0:
            x = pow(area, 1.0 / shape)
            if chance <= exp(-x):
                return x * scale
        else:
            x = -log((edge - area) / shape)
            if chance <= pow(x, shape - 1.0):
                return x * scale


class Normal:
    """Draws normally distributed numbers. They come in pairs; the second is kept for the next
    call."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._next = 0.0
        self._has_next = False

    def draw(self, mean: float, deviation: float) -> float:
        """Return the next number of this mean and standard deviation."""
        number = self._next
        if not self._has_next:
            turn = self._random() * tau
            radius = sqrt(-2.0 * log(1.0 - self._random()))
            number = cos(turn) * radius
            self._next = sin(turn) * radius
        self._has_next = not self._has_next
        return mean + number * deviation
