"""Types of the queries and bodies of requests about devices, groups, queues, topics and services.

The command line makes its options from these types as well, so that this module imports nothing of
the gateway.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

_Open = Annotated[bool, Meta(description="Whether devices may join by themselves")]


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which page of the app's devices to list."""

    after: Annotated[int, Meta(ge=0, description="Only devices with a higher number than this")] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class RemoveQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How thoroughly to remove a device."""

    erase: Annotated[
        bool, Meta(description="Also delete everything that was ever sent to the device")
    ] = False


class GroupTerms(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The properties of a group that a request sets."""

    title: Annotated[
        str, Meta(max_length=250, description="What the group is for, for people to read")
    ] = ""
    open: _Open = True


class QueueRules(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The properties of a queue that a request sets."""

    title: Annotated[
        str, Meta(max_length=250, description="What the queue is for, for people to read")
    ] = ""
    open: _Open = True
    patience: Annotated[
        float,
        Meta(
            ge=1,
            le=604_800,
            description="Seconds that a consumer may take for a message; then another consumer"
            " gets it, marked as redelivered",
        ),
    ] = 60.0
    prefetch: Annotated[
        int, Meta(ge=1, le=1000, description="Messages that a consumer holds at a time")
    ] = 16


class MembersQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How many members of a group or consumers of a queue to list."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="Number of devices to list")] = 100


class Advertisement(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The description of a topic that is advertised."""

    title: Annotated[
        str, Meta(max_length=250, description="What the topic is about, for people to read")
    ] = ""


class SubscribeQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which messages of a topic a device is to get."""

    xpath: Annotated[
        str | None,
        Meta(
            description="Only XML messages in which this XPath expression selects something;"
            " empty to receive all again"
        ),
    ] = None
    since: Annotated[
        str | None,
        Meta(
            description="Begin with what the topic remembers since the message of this id, a time"
            " in seconds since 1970, or a duration ago such as 10m; all for everything"
        ),
    ] = None
    last: Annotated[
        Annotated[int, Meta(ge=0, le=100_000)] | None,
        Meta(description="Begin with so many messages that the topic remembers, the newest"),
    ] = None


class HistoryTerms(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How much a topic remembers; a zero anywhere means nothing."""

    age: Annotated[
        float,
        Meta(ge=0, le=31_622_400, description="Seconds for which the topic remembers a message"),
    ] = 43_200.0
    messages: Annotated[
        int, Meta(ge=0, le=100_000, description="Messages that the topic remembers, the newest")
    ] = 1000
    bytes: Annotated[
        int, Meta(ge=0, le=1 << 30, description="Bytes of bodies that the topic remembers")
    ] = 16 << 20


class RankChange(msgspec.Struct, forbid_unknown_fields=True):
    """The new rank of a message."""

    rank: Annotated[
        float,
        Meta(
            ge=-1e300,
            le=1e300,
            description="The rank of the message among the messages of its topic",
        ),
    ]


class FindQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which services to list, by their operations."""

    operation: Annotated[
        str, Meta(description="Only services that have an operation of this name")
    ] = ""
