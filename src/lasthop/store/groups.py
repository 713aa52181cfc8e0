"""The rows of groups and queues, and of messages whose deliveries depend on each other. A commit of
plain traffic has no such rows."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import Micros


class GroupRow(msgspec.Struct, array_like=True):
    """A group or a queue of an app; its members are stored with the devices."""

    app: str
    target: str
    """The group or queue as a target: `group:NAME` or `queue:NAME`."""
    record: bytes
    """The record, opaque to the store; empty if the group or queue is to be removed."""


class GroupMessageRow(msgspec.Struct, array_like=True, gc=False):
    """The state that the deliveries of one group message share; removed with the message."""

    message: int
    state: int
    """The state of the message, a `core.groups.group_message.Standing`."""
    open: bool
    """Whether the gateway needs the row after a restart."""
    device: int = 0
    """The number of the device that has claimed the message; 0 if none has."""
    at: Micros = 0
    """When the message got its present state."""
    members: tuple[int, ...] = ()
    """The numbers of the devices that the message is for, ascending; empty when it is finished."""
    record: bytes = b""
    """Further details, opaque to the store. A row with a record is still read for a while after the
    message is finished."""


class GroupChanges(msgspec.Struct):
    """The group changes of one commit. If two rows have the same key, the later one is stored."""

    records: dict[tuple[str, str], GroupRow] = {}
    group_messages: dict[int, GroupMessageRow] = {}


class GroupsRestored(msgspec.Struct, frozen=True):
    """The rows of groups when a store is opened."""

    records: Iterable[GroupRow] = ()
    group_messages: Iterable[GroupMessageRow] = ()
    """The open rows, and the newest finished ones that have a record; by message."""


RECENT_GROUP_MESSAGES = 10_000
"""How many finished claims are restored: a winner may ask again after a crash."""
