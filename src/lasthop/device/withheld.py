"""Messages for a group that wait for its decision: stored and acknowledged, and shown to nobody."""

from __future__ import annotations

from lasthop.device.change import Change, KeptRow
from lasthop.device.message import Message
from lasthop.message import Binding


class Withheld:
    """What is withheld, by key. It has no deadline here: the gateway decides, and always tells."""

    def __init__(self) -> None:
        self._messages: dict[int, Message] = {}
        self._stored: dict[int, KeptRow] = {}
        self._removed: list[int] = []

    def restore(self, message: Message) -> None:
        """A message that was withheld before a restart."""
        self._messages[message.key] = message

    def __contains__(self, key: int) -> bool:
        return key in self._messages

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def dirty(self) -> bool:
        """Whether something has to survive."""
        return bool(self._stored or self._removed)

    def keep(self, message: Message) -> None:
        """Show it to nobody for now."""
        key = message.key
        self._messages[key] = message
        self._stored[key] = KeptRow(key, message.rank, message.frame, message.default_type)

    def take(self, key: int) -> Message | None:
        """Withhold it no longer."""
        message = self._messages.pop(key, None)
        if message is not None and self._stored.pop(key, None) is None:
            self._removed.append(key)
        return message

    def clear(self) -> None:
        """Nobody will ever decide about these."""
        for key in list(self._messages):
            self.take(key)

    def collect(self, change: Change) -> None:
        """Put into `change` what has to survive."""
        change.kept += self._stored.values()
        change.unkept += self._removed
        self._stored, self._removed = {}, []


def is_withheld(message: Message) -> bool:
    """Whether it may be shown only when its group has decided."""
    headers = message.frame.headers
    return headers is not None and headers.binding is Binding.ATOMIC
