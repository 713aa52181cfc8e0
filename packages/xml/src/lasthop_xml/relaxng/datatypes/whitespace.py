"""White space in texts, as XML Schema normalizes it."""

from __future__ import annotations

import re

_BLANKS = re.compile("[ \t\n\r]+")


def collapsed(text: str) -> str:
    """Return a text without white space around it, and with one space for each run inside."""
    return _BLANKS.sub(" ", text).strip(" ")


def words(text: str) -> list[str]:
    """Return the words of a text, which white space separates."""
    return [word for word in _BLANKS.split(text) if word]


def is_blank(text: str) -> bool:
    """Return whether a text is empty or only white space."""
    return not text.strip(" \t\n\r")
