"""What one topic remembers: its last messages, in the order in which they appeared."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

import msgspec

from lasthop.clock import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Micros
from lasthop.core.limits import HistoryBounds
from lasthop.errors import InvalidRequest
from lasthop.message import first_key_at, key_of_id

MOST_AGE = 366 * DAY
"""The longest time for which a topic can be told to remember a message."""

MOST_MESSAGES = 100_000
"""The largest number of messages that one topic can be told to remember."""

MOST_BYTES = 1 << 30
"""The largest number of bytes that one topic can be told to remember."""


def check_bounds(bounds: HistoryBounds) -> HistoryBounds:
    """Return bounds that are within their limits; otherwise raise an error."""
    limits = ("age", MOST_AGE), ("messages", MOST_MESSAGES), ("bytes", MOST_BYTES)
    for name, limit in limits:
        if not 0 <= getattr(bounds, name) <= limit:
            raise InvalidRequest(f"{name}: must be between 0 and {limit}", field=name)
    return bounds


class RememberedMessage:
    """A message that its topic remembers."""

    __slots__ = ("at", "commit", "expires", "key", "place", "replaces", "size", "topic")

    def __init__(self, topic: MessageHistory, key: int, size: int, at: Micros, expires: Micros):
        self.topic = topic
        self.key = key
        self.size = size
        self.at = at
        """When the message appears in its topic: at acceptance, or at its scheduled time."""
        self.expires = expires
        """When the message leaves by itself; 0 for never."""
        self.place = 0
        """The place in the history, which ascends; 0 while the message is scheduled or gone."""
        self.commit = 0
        """The commit that makes the place durable; nobody is shown the message before."""
        self.replaces: tuple[str, str] | None = None
        """The source and replace key under which a later message takes this one's place."""


class MessageHistory:
    """The last messages of one topic, oldest first."""

    __slots__ = ("_entries", "app", "bytes", "count", "last", "name", "replaceable", "scheduled")

    def __init__(self, app: str, name: str) -> None:
        self.app = app
        self.name = name
        self._entries: deque[RememberedMessage] = deque()
        """All entries by place; those that are gone stay until they are the oldest."""
        self.count = 0
        self.bytes = 0
        self.last = 0
        """The newest place that was given out."""
        self.scheduled: dict[int, RememberedMessage] = {}
        """The messages that will appear later, by key."""
        self.replaceable: dict[tuple[str, str], RememberedMessage] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing is remembered and nothing is scheduled."""
        return not self.count and not self.scheduled

    def append(self, entry: RememberedMessage, commit: int) -> None:
        """Give an entry the next place."""
        self.last = entry.place = max(entry.key, first_key_at(entry.at), self.last + 1)
        entry.commit = commit
        self._add(entry)

    def restore(self, entry: RememberedMessage, place: int) -> None:
        """Put an entry back to its place, which comes after those that were restored before."""
        self.last = entry.place = place
        self._add(entry)

    def _add(self, entry: RememberedMessage) -> None:
        self._entries.append(entry)
        self.count += 1
        self.bytes += entry.size

    def remove(self, entry: RememberedMessage) -> None:
        """Forget an entry, wherever it is."""
        if entry.place:
            entry.place = 0
            self.count -= 1
            self.bytes -= entry.size
            self._drop_gone()
        self.scheduled.pop(entry.key, None)
        if entry.replaces is not None and self.replaceable.get(entry.replaces) is entry:
            del self.replaceable[entry.replaces]

    def _drop_gone(self) -> None:
        entries = self._entries
        while entries and not entries[0].place:
            entries.popleft()
        # Those in the middle go when they are most of the list, so that each costs one look.
        if len(entries) > 16 and len(entries) > 2 * self.count:
            self._entries = deque(entry for entry in entries if entry.place)

    @property
    def oldest(self) -> RememberedMessage | None:
        """The entry that has been there longest; None if there is none."""
        return self._entries[0] if self._entries else None

    def excess(self, bounds: HistoryBounds, now: Micros) -> RememberedMessage | None:
        """Return the oldest entry if it is beyond the bounds, to be removed; otherwise None."""
        if not self._entries:
            return None
        oldest = self._entries[0]
        over = (
            self.count > bounds.messages
            or self.bytes > bounds.bytes
            or oldest.at <= now - bounds.age
            or 0 < oldest.expires <= now
        )
        return oldest if over else None

    def newest_first(self, durable: int, now: Micros) -> Iterator[RememberedMessage]:
        """Yield what may be shown to a reader, newest first."""
        for entry in reversed(self._entries):
            if entry.place and entry.commit <= durable and not 0 < entry.expires <= now:
                yield entry

    def select(
        self, since: Since, durable: int, now: Micros, *, most: int | None = None
    ) -> list[RememberedMessage]:
        """Return the entries from a point on, oldest first; if there are more than `most`, the
        oldest of them."""
        found: list[RememberedMessage] = []
        if since.nothing:
            return found
        after = since.after
        if since.key is not None:
            after = self._place_after(since.key)
        for entry in self.newest_first(durable, now):
            if entry.place <= after or entry.at < since.time:
                break
            if since.last is not None and len(found) >= since.last:
                break
            found.append(entry)
        found.reverse()
        return found if most is None else found[:most]

    def _place_after(self, key: int) -> int:
        """Return the place of the message with this key, or where it would be: a key has the time
        of its acceptance."""
        for entry in reversed(self._entries):
            if entry.key == key:
                return entry.place
            if entry.place and entry.place < key:
                break
        return key


class Since(msgspec.Struct, frozen=True, kw_only=True):
    """The point in the history of a topic from which on a reader wants its messages."""

    nothing: bool = False
    key: int | None = None
    """The message after which to begin."""
    after: int = 0
    """The place after which to begin."""
    time: Micros = 0
    """The time from which on to begin."""
    last: int | None = None
    """At most so many, the newest."""


ALL = Since()
NONE = Since(nothing=True)

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_UNITS = {"ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}


def parse_since(text: str, now: Micros) -> Since:
    """Return the point that a text stands for: `all`, `none`, `latest`, an id of a message, a time
    in seconds since 1970, or a duration such as `10m` or `1h30m`."""
    text = text.strip()
    named = {"all": ALL, "none": NONE, "latest": Since(last=1)}.get(text)
    if named is not None:
        return named
    try:
        if (key := key_of_id(text)) is not None:
            return Since(key=key)
        if text.isascii() and text.isdigit() and len(text) <= 12:
            return Since(time=int(text) * SECOND)
        if _DURATION.fullmatch(text) and len(text) <= 40:
            parts = _PART.findall(text)
            return Since(time=now - round(sum(float(n) * _UNITS[unit] for n, unit in parts)))
    except (ValueError, OverflowError):
        pass
    raise InvalidRequest(
        "since is all, none, latest, the id of a message, a time in seconds since 1970, or a"
        " duration such as 10m",
        field="since",
        value=text[:100],
    )


def parse_last(text: str) -> Since:
    """Return the point so many messages before the end."""
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 6):
        raise InvalidRequest("last is a number of messages", field="last", value=text[:100])
    return Since(last=int(text))


def beginning(since: str | None, last: str | None, now: Micros) -> Since | None:
    """Return where a subscription begins that says `since` or `last`; None if it says neither."""
    if since is not None and last is not None:
        raise InvalidRequest("a subscription begins since a point, or with the last messages")
    if last is not None:
        return parse_last(last)
    return None if since is None else parse_since(since, now)
