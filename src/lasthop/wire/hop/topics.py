"""Topics and patterns of topics, as both ends of the hop understand them."""

from __future__ import annotations

from typing import Final

XPATH_HEADER: Final = "lasthop-xpath"
"""The header that restricts a subscription to XML messages in which an XPath expression selects
something; an empty value ends the restriction."""

SINCE_HEADER: Final = "lasthop-since"
"""The header that lets a new subscription begin with what the topic remembers: since an id, a time
or a duration ago, or `all`."""

LAST_HEADER: Final = "lasthop-last"
"""The header that lets a new subscription begin with the last messages that the topic remembers, as
many as it says."""


def fits(pattern: str, topic: str) -> bool:
    """Whether a topic matches a pattern: `*` is one word, `#` any number of words.

    >>> fits("news.#", "news"), fits("news.*", "news.world"), fits("*.world", "news")
    (True, True, False)
    """
    if "*" not in pattern and "#" not in pattern:
        return pattern == topic
    words = topic.split(".")
    # Element i: whether the pattern so far matches the first i words of the topic.
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
