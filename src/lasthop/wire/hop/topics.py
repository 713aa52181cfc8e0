"""Topics and patterns of them, as both ends of the hop read them."""

from __future__ import annotations

from typing import Final

XPATH_HEADER: Final = "lasthop-xpath"
"""With a subscription: only XML messages that this expression selects something of; empty: all
again."""


def fits(pattern: str, topic: str) -> bool:
    """Whether a topic is one of a pattern: `*` is one word, `#` any number of them.

    >>> fits("news.#", "news"), fits("news.*", "news.world"), fits("*.world", "news")
    (True, True, False)
    """
    if "*" not in pattern and "#" not in pattern:
        return pattern == topic
    words = topic.split(".")
    # Which beginnings of the topic the parts of the pattern so far can stand for.
    row = [True] + [False] * len(words)
    for part in pattern.split("."):
        if part == "#":
            reached = False
            after = []
            for was in row:
                reached = reached or was
                after.append(reached)
        else:
            after = [False]
            after += [
                was and part in ("*", word) for was, word in zip(row[:-1], words, strict=True)
            ]
        row = after
    return row[-1]
