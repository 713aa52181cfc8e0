"""Large bodies on their way to devices: ahead of their message, or when the device pulls them.

A body above `Limits.segment` goes ahead in pieces while its delivery is still pending. Only when
the device has all of it durably is the message released, without its body: it takes its number and
its place in order then. Messages of a higher priority leave in between; if the message is cancelled
or expires meanwhile, the device drops bytes that belong to no message.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import msgspec

from lasthop.clock import Micros
from lasthop.core.contacts.channel_state import ChannelState
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery, Item
from lasthop.core.dispatch import Dispatcher
from lasthop.core.effects import Fetch
from lasthop.core.feature import DeliveryObserver, Gate, Leaving
from lasthop.core.lifecycle import PENDING, SENDING, State, Step
from lasthop.core.pieces.pump import PiecePump, takes_pieces
from lasthop.core.session import Session
from lasthop.core.transfer import Transfer
from lasthop.errors import NotFound
from lasthop.message import Message, Quality, Reliability
from lasthop.wire.hop.frames import Ending, EndStatus, Headers, MessageFrame, Taken
from lasthop.wire.hop.transfer import CORRUPT, FIRST_LIMIT, Sending

WINDOW = 1 << 20
"""The number of bytes of a body that are kept in memory after the body was read from the store
again, to save memory."""

GONE = "the message is not open any more"
_PLAIN = Headers()


class BodySource:
    """The body of one delivery, as the source of a transfer."""

    __slots__ = (
        "_bodies",
        "_checksum",
        "_fetching",
        "_pulled",
        "_stopped",
        "_window",
        "delivery",
    )

    def __init__(self, bodies: Bodies, delivery: Delivery, *, pulled: bool) -> None:
        self._bodies = bodies
        self.delivery = delivery
        self._pulled = pulled
        self._checksum: int | None = None
        self._window: tuple[int, bytes] = (0, b"")
        self._fetching = False
        self._stopped: str | None = None

    @property
    def priority(self) -> int:
        return self.delivery.item.message.priority

    @property
    def queue(self) -> str | None:
        return self.delivery.item.message.queue

    @property
    def quality(self) -> Quality | None:
        return self.delivery.item.message.quality

    @property
    def deadline(self) -> Micros | None:
        return self.delivery.item.message.deliver_before

    @property
    def available(self) -> int:
        return self.delivery.item.size

    def read(self, offset: int, size: int) -> bytes | None:
        item = self.delivery.item
        if item.resident:
            return item.message.body[offset : offset + size]
        start, window = self._window
        found = window[offset - start : offset - start + size] if offset >= start else b""
        if found:
            return found
        self._fetch(offset)
        return None

    def _fetch(self, offset: int) -> None:
        if not self._fetching:
            self._fetching = True
            self._window = (offset, b"")
            self._bodies.fetch(self)

    def fetched(self, body: bytes) -> None:
        """Accept the body that was read from the store, and keep a window of it."""
        self._fetching = False
        self._checksum = zlib.crc32(body)
        offset = self._window[0]
        self._window = (offset, body[offset : offset + WINDOW])

    def refusal(self, now: Micros) -> str | None:
        if self._stopped is not None:
            return self._stopped
        delivery = self.delivery
        before = delivery.item.message.deliver_before
        if before is not None and now >= before:
            return "deliver_before has passed"
        state = delivery.state
        if self._pulled:
            return None if self._bodies.is_known(delivery) else GONE
        return None if state is PENDING and not delivery.ahead else GONE

    def announced(self) -> bool:
        return True

    @property
    def floor(self) -> int:
        return 0

    def lost(self, now: Micros) -> None:
        """Do nothing: the gateway has the whole body, so that it can be sent from the start."""

    def taken(self, offset: int, now: Micros) -> None:
        """Do nothing: it matters only when the device has the whole body."""

    def last_word(self) -> Ending | None:
        item = self.delivery.item
        if self._checksum is None:
            if not item.resident:
                self._fetch(0)
                return None
            self._checksum = zlib.crc32(item.message.body)
        return Ending(item.message.key, EndStatus.COMPLETE, item.size, self._checksum)

    def confirmed(self, now: Micros) -> None:
        if not self._pulled:
            self.delivery.ahead = True
            self._bodies.arrived(self.delivery)
        elif self.delivery.ahead:
            self._bodies.resend(self.delivery, now)

    def stopped(self, reason: str, now: Micros) -> None:
        self._stopped = reason
        if reason == CORRUPT:
            # The device had another body for the same message: it drops that, and this one is sent
            # from the start.
            if self.delivery.ahead:
                self._bodies.resend(self.delivery, now)
        elif not self._pulled:
            self._bodies.refused(self.delivery, reason, now)


class Bodies(Gate, DeliveryObserver):
    """Sends bodies in pieces: a gate that every message with a large body has to pass."""

    def __init__(self, deliveries: Deliveries, pump: PiecePump, dispatcher: Dispatcher) -> None:
        self._deliveries = deliveries
        self._pump = pump
        self._dispatcher = dispatcher
        self._segment = deliveries.limits.segment
        self._fetching: dict[int, list[BodySource]] = {}
        self._earlier = deliveries.commits.durable_key
        """Messages up to this key were accepted before this start: the device may have parts of
        them."""

    def attach(self, item: Item) -> None:
        """Let a message with a large body, or one that is pulled, pass this gate."""
        item.gates = (*item.gates, self)
        item.observe(self)

    def ended(self, delivery: Delivery) -> None:
        """Let the session look at its transfers again: a body that went ahead may be of no use
        now."""
        if delivery.session.transfers:
            self._deliveries.touch(delivery.session)

    def leaving(self, delivery: Delivery, channel: int, now: Micros) -> Leaving:
        """Return whether a message may be released: a large body goes ahead of it."""
        session = delivery.session
        line = session.line_of(channel) or session.line
        if delivery.ahead or not takes_pieces(line) or self.is_poke(delivery, line):
            return Leaving.GO
        # A small body gains nothing by going ahead: nothing urgent waits long for it.
        if delivery.item.size <= self._segment:
            return Leaving.GO
        key = delivery.item.message.key
        transfers = self._pump.transfers(session)
        outgoing = transfers.outgoing.get(key)
        if outgoing is None:
            sending = Sending(key, stream=False, limit=FIRST_LIMIT, ask=key <= self._earlier)
            outgoing = Transfer(sending, BodySource(self, delivery, pulled=False))
            self._pump.send(session, key, outgoing)
        return Leaving.WAIT

    def weight(self, delivery: Delivery) -> int:
        """Return the bytes of the body that leave with a message or ahead of it: none if the device
        has them, or will pull them. A body counts whole if a channel cannot carry pieces."""
        session, size = delivery.session, delivery.item.size
        lines = [line for line in session.lines if line.greeted]
        if not all(takes_pieces(line) for line in lines):
            return size
        if delivery.ahead or all(self.is_poke(delivery, line) for line in lines):
            return 0
        outgoing = session.transfers.get(delivery.item.message.key)
        return size if outgoing is None else size - outgoing.sending.taken

    def is_poke(self, delivery: Delivery, line: ChannelState) -> bool:
        """Return whether the device only gets the message's headers, and pulls the body when it
        wants."""
        message = delivery.item.message
        firm = message.reliability >= Reliability.AT_LEAST_ONCE_PROCESSING
        if not (firm and delivery.decider.pulled):
            return False  # The delivery may end before the device can ask.
        if message.pull:
            return takes_pieces(line)
        behaviour = self._deliveries.behaviours.get(message.app)
        if behaviour is None or delivery.item.size <= self._segment:
            return False
        return takes_pieces(line) and line.link in behaviour.pull_on

    def frame(self, delivery: Delivery, channel: ChannelState, frame: MessageFrame) -> MessageFrame:
        """Return the message without its body, where the body has gone ahead or waits to be
        pulled."""
        if not takes_pieces(channel):
            return frame
        if delivery.ahead:
            said: dict[str, int] = {"ahead": delivery.item.size}
        elif self.is_poke(delivery, channel):
            said = {"pull": delivery.item.size}
        else:
            return frame
        headers = msgspec.structs.replace(frame.headers or _PLAIN, **said)
        return msgspec.structs.replace(frame, headers=headers, body=b"")

    def requeued(self, delivery: Delivery) -> None:
        delivery.ahead = False

    def pull(self, session: Session, key: int | None) -> None:
        """Send a device the body of an open message that it asks for."""
        if key is None or not self._begin_pull(session, key):
            raise NotFound("there is no such message to pull", id=f"{key or 0:016x}")

    def is_known(self, delivery: Delivery) -> bool:
        """Return whether the device may know of the message. That holds for every message that has
        left, also if it is to leave again under a new number, or if the store was restored from an
        older backup."""
        if delivery.state is PENDING:
            message = delivery.item.message
            restored = message.key <= self._earlier and not message.binding
            return restored or delivery.attempts > 0
        return delivery.state in (SENDING, State.RECEIVED)

    def wanted(self, session: Session, taken: Taken) -> bool:
        """Return whether the device still needs the rest of a body that it has a part of. A pull
        that a stop of the gateway interrupted begins again."""
        delivery = session.mailbox.get(taken.transfer)
        if delivery is None:
            return False
        if delivery.ahead and delivery.state is SENDING and not taken.limit:
            # The body went ahead, and the device does not have it: send it and its message once
            # more.
            self._begin_pull(session, taken.transfer)
        again = self.is_known(delivery) and self.is_poke(delivery, session.line)
        if delivery.ahead or delivery.item.message.stream:
            return True  # The message is on its way.
        if delivery.state is PENDING and not again:
            return True
        return self._begin_pull(session, taken.transfer)

    def _begin_pull(self, session: Session, key: int) -> bool:
        delivery = session.mailbox.get(key)
        if delivery is None or not self.is_known(delivery):
            return False
        if key not in self._pump.transfers(session).outgoing:
            source = BodySource(self, delivery, pulled=True)
            self._pump.send(session, key, Transfer(Sending(key, stream=False), source))
        return True

    def fetch(self, source: BodySource) -> None:
        """Read a body from the store again."""
        key = source.delivery.item.stored_key
        if key not in self._fetching:
            self._fetching[key] = []
            self._deliveries.effects.append(Fetch([key]))
        self._fetching[key].append(source)

    def resend(self, delivery: Delivery, now: Micros) -> None:
        """Send a message once more, because the device did not have its body after all."""
        self._dispatcher.resend(delivery.session, delivery, now, "its body had been lost")

    def fetched(self, messages: Mapping[int, Message]) -> None:
        """Give bodies that came back from the store to their transfers."""
        if not self._fetching:
            return
        for key, message in messages.items():
            for source in self._fetching.pop(key, ()):
                source.fetched(message.body)
                self._deliveries.touch(source.delivery.session)

    def arrived(self, delivery: Delivery) -> None:
        """Let a message follow its body, because the device has the whole body now."""
        session = delivery.session
        session.sender.changed()
        self._deliveries.touch(session)

    def refused(self, delivery: Delivery, reason: str, now: Micros) -> None:
        """Give up a delivery because the device refuses its body."""
        if delivery.state is PENDING:
            self._deliveries.give_up(
                delivery, Step.GIVE_UP, now, reason or "the device does not take it"
            )
