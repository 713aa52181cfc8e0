"""Results on standard output: JSON lines for machines, plain lines for people."""

from __future__ import annotations

import sys

import msgspec


def say(line: str = "") -> None:
    """A line for people, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def say_json(value: object) -> None:
    """A line for machines, at once."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()
