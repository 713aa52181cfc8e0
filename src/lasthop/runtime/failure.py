"""What a command says when it cannot do what it was asked to."""

from __future__ import annotations


class Failure(Exception):
    """One clear line for a person, and the exit code of the command."""

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
