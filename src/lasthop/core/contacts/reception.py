"""The frames that come in over a channel, and the module that each of them goes to."""

from __future__ import annotations

from collections.abc import Sequence

from lasthop.clock import Micros
from lasthop.core.contacts.contact import Contacts
from lasthop.core.contacts.inbound import DeviceMessages
from lasthop.core.deliveries import Deliveries
from lasthop.core.effects import CloseChannel
from lasthop.errors import HopError
from lasthop.wire.hop.frames import (
    Ack,
    CloseCode,
    Credit,
    Dropped,
    Frame,
    Hello,
    LaneFrame,
    Last,
    MessageFrame,
    Skip,
)


class Reception:
    """Passes frames from devices to the part of the core that handles them."""

    def __init__(self, deliveries: Deliveries, contacts: Contacts, inbound: DeviceMessages) -> None:
        self._deliveries = deliveries
        self._contacts = contacts
        self._inbound = inbound

    def receive(self, channel: int, frames: Sequence[Frame], now: Micros, *, local: bool) -> None:
        """Act on frames in order, and close the channel of a device that breaks the protocol."""
        try:
            for frame in frames:
                if isinstance(frame, Hello):
                    self._contacts.hello(channel, frame, now, local=local)
                else:
                    self._frame(channel, frame, now)
        except HopError as error:
            self._deliveries.effects.append(
                CloseChannel(channel, CloseCode(error.hop_code), str(error))
            )
            self._contacts.lost(channel, str(error), now)

    def _frame(self, channel: int, frame: Frame, now: Micros) -> None:
        session = self._contacts.session(channel)
        if session is None:
            return  # A newer channel took over while the frame was on its way.
        if isinstance(frame, Ack):
            self._contacts.acknowledge(session, frame, now)
        elif isinstance(frame, MessageFrame):
            self._inbound.message(session, frame, now)
        elif isinstance(frame, Skip):
            self._inbound.skip(session, frame, now)
        elif isinstance(frame, LaneFrame):
            if isinstance(frame.frame, Skip | Last):
                self._inbound.lane_frame(session, frame, now)
            else:
                self._contacts.lane_frame(session, frame, now)
        elif isinstance(frame, Dropped):
            self._contacts.dropped(session, frame, now)
        elif isinstance(frame, Credit):
            self._contacts.credit(session, channel, frame, now)
        elif (take := self._deliveries.moments.frames.get(type(frame))) is not None:
            take(session, frame, now)
