"""White space around and inside of texts."""

from __future__ import annotations

import re

_BLANKS = re.compile("[ \t\n\r]+")


def collapsed(text: str) -> str:
    """Without blanks around it, and with one space where there were more."""
    return _BLANKS.sub(" ", text).strip(" ")


def words(text: str) -> list[str]:
    """What stands between blanks."""
    return [word for word in _BLANKS.split(text) if word]


def is_blank(text: str) -> bool:
    """Whether there is nothing but blanks."""
    return not text.strip(" \t\n\r")
