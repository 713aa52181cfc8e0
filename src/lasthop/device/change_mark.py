"""A mark that a session has changes which are not durable yet."""

from __future__ import annotations


class ChangeMark:
    """Set by every part that changes durable data, so that a turn need not ask each of them."""

    __slots__ = ("dirty",)

    def __init__(self) -> None:
        self.dirty = False
