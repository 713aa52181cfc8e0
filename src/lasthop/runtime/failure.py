"""The error with which a command ends when it cannot do what it was asked to."""

from __future__ import annotations


class Failure(Exception):
    """The failure of a command: one clear line for a person, and the exit code."""

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
