"""Bodies of this device that are too large for one frame: they are sent ahead of their messages in
pieces. A body is sent only when its message is durable: before that, a crash could let another
message get the same key."""

from __future__ import annotations

import zlib
from functools import partial

from msgspec.structs import replace

from lasthop.clock import Micros
from lasthop.device.message import Refusal
from lasthop.device.outbox import Outbox
from lasthop.device.outbox_order import OutboxGate
from lasthop.device.outgoing import Outgoing, ordinary, priority_of
from lasthop.device.pieces.transfer_book import TransferBook
from lasthop.device.terms import DeviceTerms
from lasthop.errors import TooLarge
from lasthop.wire.hop.frames import Ending, EndStatus, Headers, MessageFrame
from lasthop.wire.hop.transfer import Sending

FIRST = 10
"""The priority of a body for which all other messages wait: higher than the priorities of messages,
which are 0 to 9."""


class OutgoingBody:
    """A body of this device that is being sent in pieces."""

    __slots__ = ("body", "checksum", "deadline", "key", "priority", "queue", "sending")

    def __init__(
        self, item: Outgoing, priority: int, queue: str | None, deadline: Micros | None
    ) -> None:
        self.key = item.key
        self.queue = queue
        self.deadline = deadline
        self.body = item.frame.body
        self.checksum = zlib.crc32(self.body)
        self.priority = priority
        # The gateway grants the first bytes when it has room: devices may have to wait for others.
        self.sending = Sending(self.key, stream=False)

    def word(self) -> Ending:
        """Return the frame that ends the body, with its size and checksum."""
        return Ending(self.key, EndStatus.COMPLETE, len(self.body), self.checksum)


class OutgoingBodies(OutboxGate):
    """Holds back messages until the gateway has their bodies."""

    def __init__(self, terms: DeviceTerms, outbox: Outbox, book: TransferBook) -> None:
        self._terms = terms
        self._outbox = outbox
        self._book = book
        self.taken = True
        """Whether the gateway accepts bodies in pieces; true until the gateway says otherwise."""
        self._items: dict[int, Outgoing] = {}
        """The messages with a large body that the gateway may not have."""
        self._bodies: dict[int, OutgoingBody] = {}
        self._lanes: dict[tuple[int, str | None], dict[int, OutgoingBody]] = {}
        """The bodies by priority and queue, the oldest first: a waiting body holds up only its own
        lane."""
        self._starting: set[int] = set()
        """The keys of bodies that are sent once their messages are durable."""
        outbox.gate = self
        for item in outbox.restored:
            self.admitted(item)

    def __contains__(self, key: int) -> bool:
        return key in self._bodies

    def __len__(self) -> int:
        return len(self._bodies)

    def get(self, key: int) -> OutgoingBody | None:
        """Return the body that is being sent under this key; None if there is none."""
        return self._bodies.get(key)

    def progress(self) -> list[Sending]:
        """Return the progress of all bodies."""
        return [body.sending for body in self._bodies.values()]

    def belongs(self, key: int) -> bool:
        """Whether this is the key of a message with a large body that the gateway may not have."""
        return key in self._items

    # What the outbox asks.

    def carries(self, frame: MessageFrame) -> bool:
        if not self._is_large(frame):
            return False
        if len(frame.body) > self._terms.max_body:
            raise TooLarge(
                "the body is too large to be sent in pieces; send it as a stream",
                size=len(frame.body),
                most=self._terms.max_body,
            )
        return True

    def _is_large(self, frame: MessageFrame) -> bool:
        return len(frame.body) > self._terms.segment and self.taken and ordinary(frame)

    def admitted(self, item: Outgoing) -> None:
        if self._is_large(item.frame):
            self._items[item.key] = item
            item.light = _light(item.frame)
            item.held = item.number < 0

    def forgotten(self, item: Outgoing) -> None:
        self._items.pop(item.key, None)

    def start(self, item: Outgoing, *, durable: bool, metered: bool = False) -> None:
        key, priority = item.key, priority_of(item.frame)
        if metered:
            if key in self._bodies or key in self._starting:
                return
            body = OutgoingBody(item, priority, item.queue, item.deadline)
        else:
            # All other messages wait for one that has its number: its body goes first.
            body = OutgoingBody(item, FIRST if item.number >= 0 else priority, None, None)
        self._starting.add(key)
        if durable:
            self._begin(body)
        else:
            self._book.then(partial(self._begin, body))

    def _begin(self, body: OutgoingBody) -> None:
        key, name = body.key, (body.priority, body.queue)
        if key not in self._starting:
            return
        self.remove(key)
        self._bodies[key] = body
        lane = self._lanes.setdefault(name, {})
        lane[key] = body
        if body.priority != FIRST and any(other > key for other in lane):
            # Keep the lane in the order of its messages: an older one must not wait for a newer.
            self._lanes[name] = dict(sorted(lane.items()))

    def stop(self, item: Outgoing) -> None:
        self.remove(item.key)

    def abort(self, item: Outgoing, reason: str) -> None:
        self.remove(item.key)
        self._book.words.append(Ending(item.key, EndStatus.ABORTED, reason=reason))

    def remove(self, key: int) -> None:
        """Stop sending the body of this key."""
        self._starting.discard(key)
        body = self._bodies.pop(key, None)
        if body is not None:
            lane = self._lanes[body.priority, body.queue]
            del lane[key]
            if not lane:
                del self._lanes[body.priority, body.queue]

    # The channel.

    def welcomed(self, *, taken: bool) -> None:
        """Note whether the gateway accepts bodies in pieces. A gateway restored from a backup may
        lack bodies that were sent ahead, so it is asked for its progress again."""
        self.taken = taken
        items = sorted(self._items.values(), key=lambda item: (item.number, item.key))
        asked = [item for item in items if item.number >= 0 or not item.held]
        for item in items:
            item.light = _light(item.frame) if taken else None
            item.held = taken
        for item in asked if taken else items:
            if taken:
                self._outbox.order.held(item)
            else:
                self._outbox.order.let_go(item)

    def restored(self) -> None:
        """Continue to send, after a restart, the bodies whose messages have no number."""
        for item in self._items.values():
            if item.held:
                self._outbox.order.held(item)

    def ended(self, ending: Ending) -> bool:
        """Handle the gateway's answer that it has a body or refuses it; return False if that body
        is not being sent."""
        key = ending.transfer
        if key not in self._bodies:
            return False
        self.remove(key)
        item = self._items.get(key)
        if ending.status == EndStatus.CONFIRMED:
            if item is not None:
                item.held = False
                self._outbox.order.let_go(item)
            return True
        self._book.words.append(Ending(key, EndStatus.ABORTED, reason=ending.reason))
        if item is not None:
            self._outbox.order.refuse(item, Refusal(TooLarge.code, ending.reason))
        return True

    def first(self) -> list[OutgoingBody]:
        """Return the first body of each lane. A body for which all messages wait is sent alone:
        other bodies would take up the gateway's room for it."""
        waited_for = self._lanes.get((FIRST, None))
        lanes = self._lanes.values() if waited_for is None else [waited_for]
        return [next(iter(bodies.values())) for bodies in lanes]


def _light(frame: MessageFrame) -> MessageFrame:
    headers = replace(frame.headers or Headers(), ahead=len(frame.body))
    return MessageFrame(None, frame.key, frame.topic, headers, b"")
