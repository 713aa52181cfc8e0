"""A coverage-guided fuzzer of its own, for machines without atheris.

It keeps every input that reaches a line from another line than any input before, and makes new
inputs from those that it keeps. Python's own tracing says which lines are reached, so that it is
some ten times slower than atheris and sees nothing of C.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from typing import Any, Final

LONGEST: Final = 4096
"""The largest input that is made: tracing a large one takes as long as a hundred small ones."""

SMALL: Final = 1024
"""The largest input that is worth keeping in the repository."""

WORDS: Final = tuple(
    word.encode()
    for word in (
        *("\r\n", "\r\n\r\n", "0\r\n\r\n", "Content-Length: 5\r\n", "Host: x\r\n", "\x00", "\x7f"),
        *("Transfer-Encoding: chunked\r\n", "Connection: close\r\n", "HTTP/1.1", "HTTP/1.0", "ÿ"),
        *("Expect: 100-continue\r\n", "Upgrade: websocket\r\n", "POST /door", "1;", "4294967295"),
        *(
            "<?xml",
            "<!DOCTYPE",
            "<![CDATA[",
            "&#x",
            "]]>",
            "-->",
            '="',
            "/>",
            "--",
            "&lt;",
            "xmlns",
        ),
    )
)
"""Texts that no change of single bytes would find."""

Edge = tuple[CodeType, int, int]


class CodeCoverage:
    """The steps from line to line in modules of some packages."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = tuple(package.replace(".", "/") for package in packages)
        self._wanted: dict[CodeType, bool] = {}
        self.edges: set[Edge] = set()

    def of(self, act: Callable[[], object]) -> set[Edge]:
        """Return the steps that a call takes."""
        self.edges = set()
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            act()
        finally:
            sys.settrace(before)
        return self.edges

    def _called(self, frame: FrameType, event: str, _: object) -> Any:
        code = frame.f_code
        wanted = self._wanted.get(code)
        if wanted is None:
            wanted = any(package in code.co_filename for package in self._packages)
            self._wanted[code] = wanted
        if not wanted:
            return None
        last = 0
        edges = self.edges

        def line(frame: FrameType, event: str, _: object) -> Any:
            nonlocal last
            if event == "line":
                edges.add((code, last, frame.f_lineno))
                last = frame.f_lineno
            return line

        return line


def mutated(random: Random, seeds: Sequence[bytes]) -> bytes:
    """Return an input that was made from one of the seeds, or from two of them."""
    seed = bytearray(random.choice(seeds))
    for _ in range(random.choice((1, 1, 2, 3, 8))):
        at = random.randrange(len(seed) + 1)
        match random.randrange(7):
            case 0:
                seed[at : at + 1] = bytes((random.randrange(256),))
            case 1:
                del seed[at : at + random.randrange(1, 9)]
            case 2:
                seed[at:at] = seed[at : at + random.randrange(1, 30)]
            case 3:
                other = random.choice(seeds)
                start = random.randrange(len(other) + 1)
                seed[at:at] = other[start : start + random.randrange(1, 60)]
            case 4:
                seed[at:at] = random.choice(WORDS)
            case 5 if at < len(seed):
                seed[at] ^= 1 << random.randrange(8)
            case _:
                other = random.choice(seeds)
                seed[at:] = other[random.randrange(len(other) + 1) :]
    return bytes(seed[:LONGEST])


class GuidedFuzzer:
    """Tries inputs on one target, and keeps those that reach something new."""

    def __init__(
        self, check: Callable[[bytes], object], packages: Sequence[str], *, seed: int = 0
    ) -> None:
        """`check` raises an exception for an input that the target does not withstand."""
        self._check = check
        self._coverage = CodeCoverage(packages)
        self._random = Random(seed)
        self.failing = b""
        """The input that is being tried."""
        self.reached: set[Edge] = set()
        self.kept: list[bytes] = []
        self.executions = 0

    def try_input(self, data: bytes) -> bool:
        """Try one input; return whether it has reached something new, and is kept for that."""
        self.executions += 1
        edges = self._coverage.of(lambda: self._check(data))
        new = not edges <= self.reached
        if new:
            self.reached |= edges
            self.kept.append(data)
        return new

    def run(self, seeds: Iterable[bytes], seconds: float) -> Iterator[bytes]:
        """Try the seeds and then what becomes of them; yield what is new beyond the seeds."""
        end = time.monotonic() + seconds
        for seed in seeds:
            self.failing = seed
            self.try_input(seed)
        self.kept = self.kept or [b""]
        while time.monotonic() < end:
            self.failing = mutated(self._random, self.kept)
            if self.try_input(self.failing):
                yield self.failing


def smallest(
    check: Callable[[bytes], object],
    packages: Sequence[str],
    inputs: Iterable[bytes],
    *,
    beyond: Iterable[bytes] = (),
) -> list[bytes]:
    """Return the inputs, small ones first, that reach something which neither those `beyond` which
    they are kept nor smaller ones reach."""
    fuzzer = GuidedFuzzer(check, packages)
    for seed in beyond:
        fuzzer.try_input(seed)
    return [each for each in sorted(set(inputs), key=_size) if fuzzer.try_input(each)]


def _size(data: bytes) -> tuple[int, bytes]:
    return len(data), data


def corpus(folder: Path) -> list[bytes]:
    """Return the inputs that are kept in a folder."""
    return [file.read_bytes() for file in sorted(folder.glob("*"))]


def keep(folder: Path, inputs: Iterable[bytes]) -> None:
    """Make a folder hold these inputs and no others, under names that tell them apart."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    for data in inputs:
        add(folder, data)


def add(folder: Path, data: bytes) -> None:
    """Add an input to a folder, under a name that tells it from others."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha256(data).hexdigest()[:12]).write_bytes(data)
