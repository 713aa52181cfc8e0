"""The rows of surrogates: messages that wait for them, their state, and their revisions of
messages. A commit of an app without a surrogate has no such rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from lasthop.message import Message


class ConsultRow(msgspec.Struct, array_like=True, gc=False):
    """A message that waits for its app's surrogate."""

    number: int
    """The position in the queue, unique among the messages that wait."""
    app: str
    device: int
    """The device that the message is for, or that sent it."""
    message: int
    from_device: bool
    answers: int = 0
    """The key of the message that this one answers, if it is a device's answer; otherwise 0."""
    sent_as: int = 0
    """The key that the sending device gave the message; 0 if there is none."""
    attempts: int = 0
    """How often the surrogate has failed on the message."""
    done: bool = False
    """Whether the message waits no longer, so that the row is to be removed."""


class StateRow(msgspec.Struct, array_like=True):
    """An entry of a surrogate's state; opaque to the store. An empty value removes it."""

    app: str
    name: str
    value: bytes


class RevisionRow(msgspec.Struct, array_like=True):
    """A surrogate's revision of a message for one device, which is delivered with other content."""

    content: int
    """The key under which the body of the revision is stored."""
    message: int
    device: int
    size: int
    """The size of the revision's body, in bytes."""
    content_type: str
    title: str | None
    headers: tuple[tuple[str, str], ...]
    rank: float
    open: bool = True
    """Whether the revision is still to be delivered."""


class SurrogateChanges(msgspec.Struct):
    """The surrogate changes of one commit. If two rows have the same key, the later one is
    stored."""

    consults: dict[int, ConsultRow] = {}
    states: dict[tuple[str, str], StateRow] = {}
    revisions: dict[int, RevisionRow] = {}


class SurrogatesRestored(msgspec.Struct, frozen=True):
    """The rows of surrogates when a store is opened."""

    consults: Collection[ConsultRow] = ()
    """The messages that wait, in ascending order of their number."""
    states: Iterable[StateRow] = ()
    revisions: Collection[RevisionRow] = ()
    """The revisions that are still to be delivered."""
    held: Iterable[Message] = ()
    """The waiting messages that devices sent, in ascending order of key; may be read once."""
