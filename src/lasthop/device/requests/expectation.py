"""What whoever asks something says of the answer."""

from __future__ import annotations

import msgspec


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What is to become of the answer to a request."""

    target: str = ""
    lane: str = ""
    """Answers to requests of one lane, for one callback or for those that wait themselves, are
    handed over in the order of the requests."""
    callback: str = ""
    """By which name the outcome is handed over, in this life or a later one."""
    gather: bool = False
    """Many may answer."""
    most: int | None = None
    """So many answers are enough."""
