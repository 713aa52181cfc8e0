"""The words that a name consists of."""

from __future__ import annotations

import re
from functools import cache

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@cache
def words_of(name: str) -> tuple[str, ...]:
    """Split a name at underscores, digits and capitals: `max_frame`, `MaxFrame`, `HTTPServer`."""
    return tuple(word.lower() for word in _WORD.findall(name))
