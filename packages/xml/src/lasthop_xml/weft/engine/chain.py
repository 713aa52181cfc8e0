"""The checks of one direction: they find a message that does not continue what an end knows.

The CRC-32 of each body is continued from the one before it, together with what stands before the
check in the message. Every 64th check also covers the values of the document.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from lasthop_xml.weft.runs import RunSequence
from lasthop_xml.xas.events import TYPED_CONTENT
from lasthop_xml.xas.types.table import lexical

CHECKED: Final = 63
"""The bits of a message's number that are all set when its values are checked: in every 64th. It
costs as much as encoding a few messages."""
_OCTETS: Final = tuple(bytes((octet,)) for octet in range(256))


class Chain:
    """Where the checks of one direction have come to."""

    __slots__ = ("_check", "_next", "link", "messages")

    def __init__(self, link: int, messages: int) -> None:
        self.link = link
        """The CRC-32 of the last body."""
        self.messages = messages
        """So many went before."""
        self._next = 0
        self._check = 0

    def sealed(self, head: bytes, body: bytes, document: RunSequence) -> bytes:
        """The message with this head and body, which is the next."""
        link = crc32(body, self.link ^ _number(head, len(head)))
        check = link
        if self.messages & CHECKED == CHECKED:
            check ^= values_check(document)
        self.link = link
        self.messages += 1
        return b"".join((head, _OCTETS[check >> 8 & 0xFF], _OCTETS[check & 0xFF], body))

    def opened(self, message: bytes, size: int) -> bytes | None:
        """The body behind a head of that size and its check; None if it cannot be the next.

        IndexError if the message ends before its check does.
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
        """Whether the body that was opened had these values. Then the chain goes on from it."""
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
    """A head of one byte or two as a number, first byte least significant."""
    return message[0] if size == 1 else message[0] | message[1] << 8


def values_check(document: RunSequence) -> int:
    """The CRC-32 of all values: the UTF-8 of their lexical forms, a zero byte behind each."""
    texts = []
    for run, value in zip(document.runs, document.values, strict=False):
        if type(value) is str or run.slot is not TYPED_CONTENT:
            texts.append(value)
        else:
            texts.append(value if isinstance(value, str) else lexical(run.name, value))
    return crc32("".join([f"{text}\0" for text in texts]).encode())
