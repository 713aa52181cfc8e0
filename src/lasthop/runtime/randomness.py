"""Random numbers from the operating system, fetched many at a time.

Every message id has 64 random bits; a system call for each of them would be a sixth of all the work
of accepting a message.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import iter_unpack

PAGE = 4096
"""The number of bytes fetched at once: 512 numbers."""


class Randomness:
    """A source of 64 random bits, as good as `secrets.randbits(64)`; called without arguments."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: Iterator[tuple[int]] = iter(())

    def __call__(self) -> int:
        for (number,) in self._numbers:
            return number
        self._numbers = iter_unpack("=Q", os.urandom(PAGE))
        return self()
