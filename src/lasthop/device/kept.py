"""Messages that are acknowledged and stored outside the inbox until the application may see
them."""

from __future__ import annotations

import msgspec

from lasthop.device.change import Change, DeviceKeptRow
from lasthop.device.change_mark import ChangeMark
from lasthop.device.message import Message


class KeptMessages:
    """The messages that one part of the session keeps outside the inbox, by key."""

    def __init__(self, keys: set[int], mark: ChangeMark) -> None:
        """Start without messages; `keys` is the set of the keys that all parts keep."""
        self._keys = keys
        self._mark = mark
        self._messages: dict[int, Message] = {}
        # For the next change.
        self._stored: dict[int, DeviceKeptRow] = {}
        self._removed: list[int] = []
        self._reranked: dict[int, float] = {}

    def __contains__(self, key: int) -> bool:
        return key in self._messages

    def __len__(self) -> int:
        return len(self._messages)

    def get(self, key: int) -> Message | None:
        """Return the kept message of this key; None if it is not kept here."""
        return self._messages.get(key)

    def of_topic(self, topic: str) -> list[Message]:
        """Return all kept messages of a topic."""
        return [message for message in self._messages.values() if message.topic == topic]

    def restore(self, message: Message) -> None:
        """Keep a message that was stored before a restart."""
        self._messages[message.key] = message
        self._keys.add(message.key)

    def keep(self, message: Message) -> None:
        """Keep a new message; it is stored with the next change."""
        key = message.key
        self.restore(message)
        self._stored[key] = DeviceKeptRow(key, message.rank, message.frame, message.default_type)
        self._mark.dirty = True

    def take(self, key: int) -> Message | None:
        """Stop keeping a message; return it, or None if it was not kept here."""
        message = self._messages.pop(key, None)
        if message is not None:
            self._keys.discard(key)
            self._reranked.pop(key, None)
            if self._stored.pop(key, None) is None:
                self._removed.append(key)
            self._mark.dirty = True
        return message

    def clear(self) -> None:
        """Stop keeping all messages of this part."""
        for key in list(self._messages):
            self.take(key)

    def rerank(self, key: int, rank: float) -> None:
        """Change the rank of a kept message."""
        row = self._stored.get(key)
        if row is not None:
            self._stored[key] = msgspec.structs.replace(row, rank=rank)
        else:
            self._reranked[key] = rank
        self._mark.dirty = True

    def collect(self, change: Change) -> None:
        """Put the changes of the kept messages into `change`."""
        change.kept += self._stored.values()
        change.discarded += self._removed
        change.reranked += self._reranked.items()
        self._stored, self._removed, self._reranked = {}, [], {}
