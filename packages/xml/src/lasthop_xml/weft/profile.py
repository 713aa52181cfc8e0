"""Profiles: what both ends know before the first message.

A profile is trained on sample documents, by the sender or by the designer of the messages, and
shipped like a dictionary; or it is made from a schema. It is a snapshot without a session.
"""

from __future__ import annotations

import zlib
from typing import Final, TypeVar

import msgspec

from lasthop_xml.weft.engines import Engine
from lasthop_xml.weft.errors import WeftStateError
from lasthop_xml.weft.frozen import MAX_SNAPSHOT, Snapshot, thawed
from lasthop_xml.weft.learned import Learned, nothing_learned
from lasthop_xml.xas.limits import Limits

MAGIC: Final = b"weft profile 1\n"

_State = TypeVar("_State")


class Profile:
    """A trained state that both ends of a session have, as bytes."""

    __slots__ = ("_snapshot", "check", "data")

    def __init__(self, data: bytes) -> None:
        if not data.startswith(MAGIC):
            raise WeftStateError("this is not a profile")
        self.data = data
        self.check = zlib.crc32(data)
        """The CRC-32 at which the chain of checks starts, so that messages can only be decoded with
        the same profile."""
        self._snapshot = read_snapshot(data[len(MAGIC) :], Snapshot)

    def learned(self, engine: Engine, limits: Limits) -> Learned:
        """Return a new memory with the profile's content, for a session that starts."""
        return thawed(self._snapshot, engine, limits)


class NoProfile(Profile):
    """The profile of a session whose ends know nothing beforehand."""

    __slots__ = ()

    def __init__(self) -> None:
        self.data = b""
        self.check = 0

    def learned(self, engine: Engine, limits: Limits) -> Learned:
        return nothing_learned(engine, limits)


NO_PROFILE: Final = NoProfile()


def read_snapshot(data: bytes, kind: type[_State]) -> _State:
    """Return a snapshot of this kind, in plain values; raise WeftStateError if the bytes are not
    one."""
    if len(data) > MAX_SNAPSHOT:
        raise WeftStateError("a snapshot is too large", size=len(data), most=MAX_SNAPSHOT)
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WeftStateError("a snapshot is damaged", reason=str(error)) from None
