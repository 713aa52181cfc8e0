"""Prints results on standard output: JSON lines for machines, plain lines for people."""

from __future__ import annotations

import sys

import msgspec


def say(line: str = "") -> None:
    """Print a line for people, and flush it."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def say_json(value: object) -> None:
    """Print a value as a line of JSON for machines, and flush it."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()
