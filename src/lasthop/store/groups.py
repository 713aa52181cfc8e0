"""What a store keeps of groups and queues, and of messages whose deliveries depend on each other.
Commits of plain traffic have none of it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import Micros


class GroupRow(msgspec.Struct, array_like=True):
    """A group or a queue of an app; who belongs to it stands with the devices."""

    app: str
    target: str
    """`group:NAME` or `queue:NAME`."""
    record: bytes
    """Opaque to the store. Empty: it is removed."""


class GroupMessageRow(msgspec.Struct, array_like=True, gc=False):
    """What holds the deliveries of one message together. It goes with the message."""

    message: int
    state: int
    """Of a `core.groups.group_message.Standing`."""
    open: bool
    """Whether the gateway needs it after a restart."""
    device: int = 0
    """Who has claimed it."""
    at: Micros = 0
    """When it came to stand so."""
    members: tuple[int, ...] = ()
    """The numbers of the devices that it is for, ascending; none when that is over."""
    record: bytes = b""
    """What else there is to know of it; opaque to the store. With a record it is of interest for a
    while after it is over."""


class GroupChanges(msgspec.Struct):
    """What one commit changes. Of two rows for the same key the later one counts."""

    records: dict[tuple[str, str], GroupRow] = {}
    group_messages: dict[int, GroupMessageRow] = {}


class GroupsRestored(msgspec.Struct, frozen=True):
    """What there is when a store is opened."""

    records: Iterable[GroupRow] = ()
    group_messages: Iterable[GroupMessageRow] = ()
    """The open ones, and the newest few that are over and have a record; by message."""


RECENT_GROUP_MESSAGES = 10_000
"""Claims that are over and still answered for: after a crash a winner asks again."""
