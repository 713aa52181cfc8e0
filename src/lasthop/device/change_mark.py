"""Whether a session has something that is not durable yet."""

from __future__ import annotations


class ChangeMark:
    """Marked by whoever changes what has to survive, so that nobody has to be asked."""

    __slots__ = ("dirty",)

    def __init__(self) -> None:
        self.dirty = False
