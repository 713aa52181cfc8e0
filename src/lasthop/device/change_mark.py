"""A mark that a session has changes which are not durable yet."""

from __future__ import annotations


class ChangeMark:
    """A flag that each part of a session sets when it changes durable data, so that a turn need not
    ask every part."""

    __slots__ = ("dirty",)

    def __init__(self) -> None:
        self.dirty = False
