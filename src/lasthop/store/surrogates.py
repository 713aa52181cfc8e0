"""What a store keeps for surrogates: what waits for them, what they remember, and what they made of
messages. Commits of apps without one have none of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from lasthop.message import Message


class ConsultRow(msgspec.Struct, array_like=True, gc=False):
    """A message that waits for its app's surrogate."""

    number: int
    """Its turn; unique among those that wait."""
    app: str
    device: int
    """For whom it is, or who sent it."""
    message: int
    from_device: bool
    answers: int = 0
    """The message that it answers, if it is a device's answer."""
    sent_as: int = 0
    """The key that the sending device gave it, if any."""
    attempts: int = 0
    """How often the surrogate has failed at it."""
    done: bool = False
    """It waits no longer, and the row goes."""


class StateRow(msgspec.Struct, array_like=True):
    """An entry of a surrogate's state; opaque to the store. An empty value removes it."""

    app: str
    name: str
    value: bytes


class RevisionRow(msgspec.Struct, array_like=True):
    """What a surrogate made of a message for one device: it travels with another's content."""

    content: int
    """The key under which its body is stored."""
    message: int
    device: int
    size: int
    """Of its body."""
    content_type: str
    title: str | None
    headers: tuple[tuple[str, str], ...]
    rank: float
    open: bool = True
    """Whether it is still to be delivered."""


class SurrogateChanges(msgspec.Struct):
    """What one commit changes. Of two rows for the same key the later one counts."""

    consults: dict[int, ConsultRow] = {}
    states: dict[tuple[str, str], StateRow] = {}
    revisions: dict[int, RevisionRow] = {}


class SurrogatesRestored(msgspec.Struct, frozen=True):
    """What there is when a store is opened."""

    consults: Collection[ConsultRow] = ()
    """In ascending order of number."""
    states: Iterable[StateRow] = ()
    revisions: Collection[RevisionRow] = ()
    """The open ones."""
    held: Iterable[Message] = ()
    """What devices sent and waits, in ascending order of key; may be read once."""
