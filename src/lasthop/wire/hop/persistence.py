"""Whether a session's numbering continues: what each side concludes from the other's half of a
handshake.

A session outlives its channels. When a device comes back, the gateway compares what the HELLO
claims with what the store knows: either the numbering continues and only what is missing is sent,
or a new epoch begins and both sides count from 0. The device then compares the WELCOME with what it
holds. Both are pure functions of durable facts (docs/hop-protocol.md, "Handshake and persistence").
"""

from __future__ import annotations

import msgspec

from lasthop.errors import OutOfOrder
from lasthop.wire.hop.frames import Ack, Hello, Ranges, Welcome


class Numbering(msgspec.Struct, frozen=True, gc=False):
    """An epoch, and how many of the device's messages the gateway has received in it."""

    incarnation: bytes
    epoch: int
    received: int = 0


HISTORY = 4
"""The number of earlier epochs that the gateway remembers. A device claims the last one whose
WELCOME reached it; with several dials under way at once that need not be the latest."""


class GatewaySession(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What the gateway's store knows of a session when its device sends HELLO."""

    current: Numbering
    """The numbering in force; its incarnation is that of the store."""
    assigned: int = 0
    """How many numbers were ever assigned to messages for the device."""
    acknowledged: int = 0
    """How many of these numbers the device has acknowledged as received, consecutively."""
    previous: tuple[Numbering, ...] = ()
    """Earlier numberings that the device may still claim, latest first."""
    used: bool = False
    """Whether anything was received or acknowledged in a lane beside lane 0."""


class ResumeNumbering(msgspec.Struct, frozen=True, gc=False):
    """The gateway's answer that the numbering continues: apply `ack`, then send what it leaves
    unacknowledged."""

    ack: Ack
    closed: int
    """For the WELCOME: the device need not wait for numbers below this count, which it acknowledged
    once."""


class NewEpoch(msgspec.Struct, frozen=True, gc=False):
    """The gateway's answer that a new epoch begins: both directions start at 0.

    `current` and `previous` are durable before WELCOME leaves, and channels of an older epoch are
    closed as replaced, so that `superseded` stays true.
    """

    current: Numbering
    previous: tuple[Numbering, ...]
    superseded: int | None
    """How many of the device's messages of the claimed epoch the gateway holds; None if that epoch
    is unknown."""
    offered_before: bool = False
    """Whether the epoch began with an earlier WELCOME that was lost, so that there is nothing to
    commit."""


def answer(session: GatewaySession, hello: Hello) -> ResumeNumbering | NewEpoch:
    """Decide at the gateway whether a HELLO resumes the numbering or starts a new epoch."""
    if hello.delivered > hello.received:
        raise OutOfOrder(
            "a HELLO has more delivered than received",
            received=hello.received,
            delivered=hello.delivered,
        )
    current = session.current
    claimed = _claimed(session, hello)
    if claimed is current and _highest(hello) <= session.assigned:
        # The claim may be below what was acknowledged once: an acknowledgement overtook this HELLO
        # on another channel, or the device was restored from an older copy. Either way the messages
        # are gone, and `closed` says so.
        ack = Ack(hello.received, hello.delivered, hello.individual)
        return ResumeNumbering(ack, session.acknowledged)
    unused = session.acknowledged == 0 and current.received == 0 and not session.used
    superseded = claimed.received if claimed is not None else None
    if unused and claimed is not None and claimed is not current:
        # Nothing has happened in the current epoch that the device has to know, so lost WELCOMEs do
        # not add epochs until the claimed one is forgotten.
        return NewEpoch(current, session.previous, superseded, offered_before=True)
    known = [claimed, None if unused else current, *session.previous]
    history = tuple(dict.fromkeys(numbering for numbering in known if numbering is not None))
    # Beyond the claimed epoch too: it may belong to a store that was replaced by an older copy.
    new = Numbering(current.incarnation, max(current.epoch, hello.epoch or 0) + 1)
    return NewEpoch(new, history[:HISTORY], superseded)


def _claimed(session: GatewaySession, hello: Hello) -> Numbering | None:
    for numbering in (session.current, *session.previous):
        if (hello.incarnation, hello.epoch) == (numbering.incarnation, numbering.epoch):
            return numbering
    return None


def _highest(hello: Hello) -> int:
    return hello.individual[-1][1] if hello.individual else hello.received


class StoredSession(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What the device's own store knows of its session; the epoch is None before the first
    WELCOME."""

    incarnation: bytes | None = None
    epoch: int | None = None
    assigned: int = 0
    """How many numbers were ever assigned to messages for the gateway."""
    received: int = 0
    delivered: int = 0
    individual: Ranges = ()

    def claim(self, hello: Hello) -> Hello:
        """Return `hello` with the epoch and counts of this session."""
        if self.epoch is None:
            return hello
        return msgspec.structs.replace(
            hello,
            incarnation=self.incarnation,
            epoch=self.epoch,
            received=self.received,
            delivered=self.delivered,
            individual=self.individual,
        )


class Continue(msgspec.Struct, frozen=True, gc=False):
    """The device's conclusion that the numbering continues: apply `ack`, send the rest again, wait
    for nothing below `closed`."""

    ack: Ack
    closed: int


class StartOver(msgspec.Struct, frozen=True, gc=False):
    """The device's conclusion that a new epoch begins: reset all counts, and number the outbox from
    0 without the messages that the gateway holds already.

    The new epoch is durable before anything is sent or acknowledged in it.
    """

    incarnation: bytes
    epoch: int
    drop_below: int
    """Messages with old numbers below this count are held by the gateway and leave the outbox."""


class Redial(msgspec.Struct, frozen=True, gc=False):
    """The device's conclusion that this channel is of no use: close it and dial again with other
    claims."""

    forget: bool
    """Whether to dial without any claim: the gateway has numbers that this device does not remember
    using, so new messages under them would be taken for duplicates."""


def accept(session: StoredSession, hello: Hello, welcome: Welcome) -> Continue | StartOver | Redial:
    """Decide at the device what the WELCOME to its `hello` means; `session` is the present
    state."""
    claimed = (hello.incarnation, hello.epoch)
    offered = (welcome.incarnation, welcome.epoch)
    if welcome.resumed != (claimed == offered):
        raise OutOfOrder(
            "a WELCOME resumes an epoch that was not claimed, or starts one again",
            claimed=hello.epoch,
            epoch=welcome.epoch,
        )
    if claimed != (session.incarnation, session.epoch):
        # A WELCOME on another channel was faster and began an epoch; this one answers old claims.
        return Redial(forget=False)
    if welcome.resumed:
        highest = welcome.individual[-1][1] if welcome.individual else welcome.received
        # The device is an older copy of itself: its next messages would be taken for duplicates.
        if highest > session.assigned:
            return Redial(forget=True)
        ack = Ack(welcome.received, welcome.received, welcome.individual)
        return Continue(ack, welcome.closed)
    superseded = welcome.superseded or 0
    # A count beyond what we ever assigned belongs to an earlier state of this device and says
    # nothing of our outbox; by their keys the gateway recognises the messages that it has.
    drop_below = superseded if superseded <= session.assigned else 0
    return StartOver(welcome.incarnation, welcome.epoch, drop_below)
