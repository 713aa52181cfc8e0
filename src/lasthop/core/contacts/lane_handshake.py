"""Lanes in the handshake of a device: whether they are granted, and whether its claims fit."""

from __future__ import annotations

from lasthop.core.deliveries import Deliveries
from lasthop.core.lane_set import Lanes
from lasthop.core.session import Session
from lasthop.wire.hop.frames import Feature, Hello
from lasthop.wire.hop.persistence import NewEpoch, ResumeNumbering


def lanes_fit(session: Session, hello: Hello, *, granted: bool) -> bool:
    """Return whether the numbering of a device can go on as far as its lanes are concerned."""
    lanes = session.lanes
    if lanes is None:
        # The gateway knows of no lane: a device that does has spoken to a newer state of it.
        return hello.lanes is None or hello.lanes.seen <= 1
    if granted:
        return lanes.fit(hello)
    return lanes.unused


def lanes_agree(session: Session, hello: Hello) -> bool:
    """Return whether one more channel has the same answer about lanes as those that are open, and
    claims nothing that was never sent."""
    if bool(hello.features & Feature.LANES) != (session.lanes is not None):
        return session.lanes is None
    return session.lanes is None or session.lanes.fit(hello)


def begin_lanes(
    deliveries: Deliveries,
    session: Session,
    hello: Hello,
    answer: ResumeNumbering | NewEpoch,
    *,
    granted: bool,
) -> None:
    """Begin a contact with lanes or without, as this HELLO asks for."""
    if not granted:
        if session.lanes is not None:
            session.lanes.end()
            session.lanes = None
        return
    if session.lanes is None:
        session.lanes = Lanes(session, deliveries, deliveries.unordered)
    if isinstance(answer, ResumeNumbering):
        session.lanes.resumed(hello)
