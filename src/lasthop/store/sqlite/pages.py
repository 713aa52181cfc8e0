"""Pages of messages: the msgpack arrays in which messages are kept, in ascending order of key."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence

import msgspec

from lasthop.message import Message

PAGE_BYTES = 64 * 1024
"""Bytes at which a page is cut. Reading one message reads its page, which at this size takes 50 µs;
pages of 256 KiB take 130 µs and are not written any faster."""

_encoder = msgspec.msgpack.Encoder()
_messages = msgspec.msgpack.Decoder(list[Message])
_message = msgspec.msgpack.Decoder(Message)
_split = msgspec.msgpack.Decoder(list[msgspec.Raw])

FEW = 16
"""If a page has at least this many messages for each wanted one, the wanted ones are found without
decoding the others."""


class MessagePage(msgspec.Struct):
    """Messages from key `first` to key `last`, encoded."""

    first: int
    last: int
    count: int
    body: bytes

    def find(self, keys: Sequence[int]) -> list[Message]:
        """Return the messages on the page that have one of these ascending keys."""
        if len(keys) * FEW > self.count:
            wanted = frozenset(keys)
            return [message for message in _messages.decode(self.body) if message.key in wanted]
        raws = _split.decode(self.body)
        found: list[Message] = []
        for key in keys:
            i = bisect_left(raws, key, key=_key_of)
            if i < len(raws) and _key_of(raws[i]) == key:
                found.append(_message.decode(raws[i]))
        return found

    def all_keys(self) -> list[int]:
        """Return the keys of all messages on the page."""
        return [_key_of(raw) for raw in _split.decode(self.body)]

    def without(self, gone: Collection[int]) -> MessagePage | None:
        """Return the page without these messages; None when no message is left."""
        kept = [raw for raw in _split.decode(self.body) if _key_of(raw) not in gone]
        if not kept:
            return None
        return MessagePage(_key_of(kept[0]), _key_of(kept[-1]), len(kept), _encoder.encode(kept))


class _Keyed(msgspec.Struct, array_like=True):
    """The first field of a message, which is enough to find it."""

    key: int


_decode_key: Callable[[msgspec.Raw], _Keyed] = msgspec.msgpack.Decoder(_Keyed).decode


def _key_of(raw: msgspec.Raw) -> int:
    return _decode_key(raw).key


def cut_into_pages(messages: list[Message]) -> list[MessagePage]:
    """Encode messages, in ascending order of key, into pages of about `PAGE_BYTES`."""
    if not messages:
        return []
    body = _encoder.encode(messages)
    if len(body) <= PAGE_BYTES or len(messages) == 1:
        return [MessagePage(messages[0].key, messages[-1].key, len(messages), body)]
    pieces = min(len(messages), -(-len(body) // PAGE_BYTES))
    step = -(-len(messages) // pieces)
    return [
        MessagePage(cut[0].key, cut[-1].key, len(cut), _encoder.encode(cut))
        for cut in (messages[i : i + step] for i in range(0, len(messages), step))
    ]
