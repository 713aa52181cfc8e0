"""What may be asked of devices, groups, queues, topics and services.

The command line makes its options from these types as well, so that this module imports nothing of
the gateway.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

_Open = Annotated[bool, Meta(description="Whether devices may join by themselves")]


class ListQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which page of the devices."""

    after: Annotated[int, Meta(ge=0, description="Only those with a higher number")] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class RemoveQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How thoroughly a device is removed."""

    erase: Annotated[bool, Meta(description="Also forget everything that was ever sent to it")] = (
        False
    )


class GroupTerms(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a group is to be."""

    title: Annotated[
        str, Meta(max_length=250, description="What the group is for, for people to read")
    ] = ""
    open: _Open = True


class QueueRules(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a queue is to be."""

    title: Annotated[
        str, Meta(max_length=250, description="What the queue is for, for people to read")
    ] = ""
    open: _Open = True
    patience: Annotated[
        float,
        Meta(
            ge=1,
            le=604_800,
            description="Seconds that a consumer may take over a message; then another one gets it,"
            " marked as redelivered",
        ),
    ] = 60.0
    prefetch: Annotated[
        int, Meta(ge=1, le=1000, description="Messages that a consumer has at a time")
    ] = 16


class MembersQuery(msgspec.Struct, forbid_unknown_fields=True):
    """How many members or consumers to list."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="Devices to list")] = 100


class Advertisement(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What there is to know of a topic."""

    title: Annotated[
        str, Meta(max_length=250, description="What the topic is about, for people to read")
    ] = ""


class SubscribeQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which messages of a topic a device is to get."""

    xpath: Annotated[
        str | None,
        Meta(
            description="Only XML messages that this XPath expression selects something of;"
            " empty: all again"
        ),
    ] = None


class RankChange(msgspec.Struct, forbid_unknown_fields=True):
    """What a message is worth by now."""

    rank: Annotated[
        float,
        Meta(ge=-1e300, le=1e300, description="What it is worth among the messages of its topic"),
    ]


class FindQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Which services to list."""

    operation: Annotated[
        str, Meta(description="Only services that have an operation of this name")
    ] = ""
