"""The file in which a publisher writes down what it sends and what it is answered.

It is the publisher's outbox too: a publisher that was killed reads in it which message it has to
repeat. Every line is written by one call, so that a kill leaves whole lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import msgspec


class Said(StrEnum):
    """What a line tells of a message."""

    SENT = "sent"
    """It is sent now for the first time; the outcome is open."""
    ACCEPTED = "accepted"
    REFUSED = "refused"
    """The gateway said that nothing was done."""
    DENIED = "denied"
    """The gateway contradicts what it has answered before."""


class AccountLine(msgspec.Struct, omit_defaults=True):
    """One line of an account: what was published, and what was answered."""

    number: int
    said: Said
    text: str
    devices: list[str]
    """The devices that get the message."""
    id: str = ""
    """The id that the gateway gave it."""
    why: str = ""


class Account:
    """An account that is open for writing."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, entry: AccountLine) -> None:
        """Append one line to the account's file."""
        os.write(self._file, msgspec.json.encode(entry) + b"\n")

    def close(self) -> None:
        os.close(self._file)


def read_account(path: Path) -> Iterator[AccountLine]:
    """Yield every whole line of an account; none if there is no file yet."""
    decoder = msgspec.json.Decoder(AccountLine)
    for line in whole_lines(path):
        yield decoder.decode(line)


def whole_lines(path: Path) -> list[bytes]:
    """Return the lines of a file without the last one if that is not finished."""
    if not path.exists():
        return []
    return path.read_bytes().split(b"\n")[:-1]
