"""The chain of checks of one direction, which finds a message that does not continue the session.

The CRC-32 of each body continues that of the one before, together with the bytes before the check
in the message. Every 64th check also covers the values of the document.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from lasthop_xml.weft.runs import RunSequence
from lasthop_xml.xas.events import TYPED_CONTENT
from lasthop_xml.xas.types.table import lexical

CHECKED: Final = 63
"""The bits of a message's number that are all set if its values are checked: in every 64th message.
A check of values costs as much as encoding a few messages."""
_OCTETS: Final = tuple(bytes((octet,)) for octet in range(256))


class Chain:
    """The chain of checks of one direction, at its latest message."""

    __slots__ = ("_check", "_next", "link", "messages")

    def __init__(self, link: int, messages: int) -> None:
        self.link = link
        """The CRC-32 of the last body."""
        self.messages = messages
        """The number of messages that the session has encoded or decoded."""
        self._next = 0
        self._check = 0

    def sealed(self, head: bytes, body: bytes, document: RunSequence) -> bytes:
        """Return the next message, with this head and body, and continue the chain."""
        link = crc32(body, self.link ^ _number(head, len(head)))
        check = link
        if self.messages & CHECKED == CHECKED:
            check ^= values_check(document)
        self.link = link
        self.messages += 1
        return b"".join((head, _OCTETS[check >> 8 & 0xFF], _OCTETS[check & 0xFF], body))

    def opened(self, message: bytes, size: int) -> bytes | None:
        """Return the body of a message, which comes after a head of `size` bytes and the check;
        None if the check shows that this is not the next message.

        Raises IndexError if the message ends before its check does.
        """
        check = message[size] << 8 | message[size + 1]
        body = message[size + 2 :]
        link = crc32(body, self.link ^ _number(message, size))
        if check != link & 0xFFFF and self.messages & CHECKED != CHECKED:
            return None
        self._next = link
        self._check = check
        return body

    def accepted(self, document: RunSequence) -> bool:
        """Return whether the body that was opened has these values; if so, continue the chain."""
        link = self._next
        if (
            self.messages & CHECKED == CHECKED
            and self._check != (link ^ values_check(document)) & 0xFFFF
        ):
            return False
        self.link = link
        self.messages += 1
        return True


def _number(message: bytes, size: int) -> int:
    """Return a head of one or two bytes as a number, first byte least significant."""
    return message[0] if size == 1 else message[0] | message[1] << 8


def values_check(document: RunSequence) -> int:
    """Return the CRC-32 of all values: the UTF-8 of their lexical forms, with a zero byte after
    each."""
    texts = []
    for run, value in zip(document.runs, document.values, strict=False):
        if type(value) is str or run.slot is not TYPED_CONTENT:
            texts.append(value)
        else:
            texts.append(value if isinstance(value, str) else lexical(run.name, value))
    return crc32("".join([f"{text}\0" for text in texts]).encode())
