"""Encoding of the hop protocol: frames become bytes, as short as the channel's context allows.

One encoder serves one direction of one channel. It remembers what it sent last (a number, a key, an
acknowledgement, topics) and leaves out what the peer's decoder can derive. Every frame is written
with its length before it, as on a stream; `bundling` makes datagrams of them.
"""

from __future__ import annotations

from lasthop.errors import TooLarge
from lasthop.message import DEFAULT_CONTENT_TYPE, MAX_KEY
from lasthop.wire.hop import fields, layout
from lasthop.wire.hop.checksums import sealed
from lasthop.wire.hop.frames import (
    DEFAULT_MAX_FRAME,
    MAX_TOPIC,
    Ack,
    Close,
    Credit,
    Dropped,
    Ending,
    Feature,
    Frame,
    Headers,
    Hello,
    LaneFrame,
    Last,
    MessageFrame,
    OtherWays,
    Piece,
    Ping,
    Pong,
    Skip,
    Taken,
    Time,
    Wanted,
    Welcome,
)
from lasthop.wire.hop.kinds import TEXTS, write_ranges, write_text
from lasthop.wire.hop.lane_contexts import AckContext, LaneContexts, MessageContext
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.varint import encode_varint

NOTHING = -1
"""The next number or the last key on a mapping without order: nothing can be relative to it."""


ONLY_UNORDERED = "only a lane without order has numbers finished beyond a gap"
_ONE_MORE = bytes((layout.ADVANCE,))
"""An ADVANCE by one, which LANE leaves out."""


class Encoder:
    """Encodes frames for one direction of one channel.

    `preferred` is the first type of the peer's accept list, which is left out of headers;
    `max_frame` is the limit that the peer announced.
    """

    __slots__ = (
        "_delivered",
        "_key",
        "_lanes",
        "_next",
        "_ordered",
        "_received",
        "_topics",
        "max_frame",
        "preferred",
    )

    def __init__(
        self,
        mapping: Mapping,
        *,
        preferred: str = DEFAULT_CONTENT_TYPE,
        max_frame: int = DEFAULT_MAX_FRAME,
    ) -> None:
        self.preferred = preferred
        self.max_frame = max_frame
        self._ordered = mapping.ordered
        self._key = 0 if self._ordered else NOTHING
        self._topics: dict[str, int] | None = None
        self._lanes: LaneContexts | None = None
        self.begin()

    def begin(self, *, next_seq: int = 0, received: int = 0, delivered: int = 0) -> None:
        """Set the counts that the handshake has settled: the peer's received count, and our own
        counts."""
        self._next = next_seq if self._ordered else NOTHING
        self._received = received
        self._delivered = delivered

    def encode(self, frame: Frame, out: bytearray) -> None:
        """Append `frame` to `out`; when this raises, neither `out` nor the context has changed."""
        if type(frame) is MessageFrame:
            if frame.lane:
                self._encode_in_lane(frame, out)
                return
            self.encode_message(out, frame.seq, frame.key, frame.topic, frame.headers, frame.body)
        elif type(frame) is Ack:
            self._encode_ack(frame, out)
        elif type(frame) is LaneFrame:
            self._encode_lane_frame(frame, out)
        else:
            self._append(_control(frame), out)

    def encode_message(
        self,
        out: bytearray,
        seq: int | None,
        key: int | None,
        topic: str | None = None,
        headers: Headers | None = None,
        body: bytes = b"",
        lane: int = 0,
    ) -> None:
        """Append a message to `out` without making a frame object first."""
        flags = layout.MESSAGE
        head = b""
        if lane:
            flags |= layout.IN_LANE
            head = encode_varint(lane)
        if seq is None:
            flags |= layout.UNSEQUENCED
        elif seq != self._next:
            flags |= layout.NUMBERED
            head += encode_varint(seq)
        if key is None:
            flags |= layout.KEY_NONE
        elif key != self._key + 1 or not self._ordered:
            form, step = self._key_step(key)
            flags |= form
            head += encode_varint(step)
        if topic is not None:
            flags |= layout.TOPIC
            head += self._topic(topic)
        if headers is not None:
            omit = "content_type" if headers.content_type == self.preferred else ""
            block = fields.HEADERS.write(headers, omit=omit)
            if block:
                flags |= layout.HEADERS
                head += encode_varint(len(block)) + block
        size = 1 + len(head) + len(body)
        if size > self.max_frame:
            raise TooLarge("the message is larger than the peer accepts", size=size)
        if size < 0x80:
            out.append(size)
        elif size < 0x4000:
            out.append(size & 0x7F | 0x80)
            out.append(size >> 7)
        else:
            out += encode_varint(size)
        out.append(flags)
        if head:
            out += head
        out += body
        if self._ordered:
            if seq is not None:
                self._next = seq + 1
            if key is not None:
                self._key = key
            if topic is not None:
                self._remember(topic)

    def _encode_in_lane(self, frame: MessageFrame, out: bytearray) -> None:
        lane = _checked(frame.lane)
        if frame.seq is None:
            raise ValueError("a message without a number has no lane")
        lanes = self._lanes
        if lanes is None:
            lanes = self._lanes = LaneContexts()
        before = self._next, self._key
        if self._ordered:
            self._next, self._key = lanes.next_message(lane, self._key)
        try:
            self.encode_message(
                out, frame.seq, frame.key, frame.topic, frame.headers, frame.body, lane
            )
            lanes.note_message(lane, MessageContext(self._next, self._key))
        finally:
            self._next, self._key = before

    def _encode_lane_frame(self, frame: LaneFrame, out: bytearray) -> None:
        lane, inner = _checked(frame.lane), frame.frame
        head = bytes((layout.LANE,)) + encode_varint(lane)
        if type(inner) is Ack:
            if inner.finished and not lane & 1:
                raise ValueError(ONLY_UNORDERED)
            if self._lanes is None:
                self._lanes = LaneContexts()
            said = self._ack(inner, *self._lanes.last_acknowledged(lane))
            # docs/hop-protocol.md, "Lanes": nothing behind the lane is an ADVANCE by one.
            self._append(head + (b"" if said == _ONE_MORE else said), out)
            self._lanes.note_ack(lane, AckContext(inner.received, inner.delivered))
        else:
            self._append(head + _control(inner), out)

    def _key_step(self, key: int) -> tuple[int, int]:
        if not 0 <= key <= MAX_KEY:
            raise ValueError(f"a key must be unsigned, with at most 63 bits: {key}")
        last = self._key
        ms = (key >> layout.TIME_SHIFT) - (last >> layout.TIME_SHIFT)
        counter = key & layout.COUNTER_MASK
        same_node = (key ^ last) & layout.NODE_MASK == 0
        if self._ordered and same_node and ms >= 0 and counter < layout.FORWARD_LIMIT:
            return layout.KEY_FORWARD, ms << layout.FORWARD_BITS | counter
        return layout.KEY_ABSOLUTE, key

    def _topic(self, topic: str) -> bytes:
        token = self._topics.get(topic) if self._topics is not None else None
        if token is not None:
            return encode_varint(token)
        text = write_text(topic)
        if len(text) > MAX_TOPIC + 2:
            raise TooLarge("a topic is longer than the hop protocol allows", most=MAX_TOPIC)
        return b"\x00" + text

    def _remember(self, topic: str) -> None:
        if self._topics is None:
            self._topics = {}
        if topic not in self._topics and len(self._topics) < layout.MAX_TOKEN:
            self._topics[topic] = len(self._topics) + 1

    def _encode_ack(self, ack: Ack, out: bytearray) -> None:
        if ack.finished:
            raise ValueError(ONLY_UNORDERED)
        self._append(self._ack(ack, self._received, self._delivered), out)
        self._received = ack.received
        self._delivered = ack.delivered

    def _ack(self, ack: Ack, received: int, delivered: int) -> bytes:
        """Return an ACK, or the ADVANCE that says the same after these counts were said last."""
        step = ack.received - received
        together = step == ack.delivered - delivered
        apart = ack.individual or ack.finished
        # docs/hop-protocol.md, "Acknowledgements and credit": ADVANCE moves both counts by the same
        # number and says that nothing was received beyond a gap.
        if self._ordered and together and step > 0 and not apart:
            payload = b"" if step == 1 else encode_varint(step)
            return bytes((layout.ADVANCE,)) + payload
        counts = encode_varint(ack.received) + encode_varint(ack.delivered)
        ranges = write_ranges(ack.received, ack.individual)
        if ack.finished:
            # docs/hop-protocol.md, "Lanes": a zero, neither a gap nor a run, ends the pairs.
            ranges += b"\0" + write_ranges(ack.delivered, ack.finished)
        return bytes((layout.ACK,)) + counts + ranges

    def _append(self, content: bytes, out: bytearray) -> None:
        if len(content) > self.max_frame:
            raise TooLarge("the frame is larger than the peer accepts", size=len(content))
        out += encode_varint(len(content))
        out += content


def _checked(lane: int) -> int:
    if lane < layout.FIRST_LANE:
        raise ValueError(f"a lane beside lane 0 has a number above 1: {lane}")
    return lane


def _control(frame: Frame | Last) -> bytes:
    match frame:
        case Ping():
            return bytes((layout.PING,))
        case Pong():
            return bytes((layout.PONG,))
        case Time(own, peer):
            return bytes((layout.TIME,)) + encode_varint(own) + encode_varint(peer)
        case OtherWays(ways):
            return bytes((layout.WAYS,)) + TEXTS.write(tuple(text for way in ways for text in way))
        case Wanted(links):
            return bytes((layout.WANTED,)) + TEXTS.write(links)
        case Skip(first, count):
            if count < 1:
                raise ValueError("a SKIP must close at least one number")
            more = encode_varint(count - 1) if count > 1 else b""
            return bytes((layout.SKIP,)) + encode_varint(first) + more
        case Credit(messages, size):
            return bytes((layout.CREDIT,)) + encode_varint(messages) + encode_varint(size)
        case Last(number):
            return bytes((layout.LAST,)) + encode_varint(number)
        case Dropped(ranges):
            return bytes((layout.DROPPED,)) + write_ranges(-1, ranges)
        case Piece(transfer, offset, body, stream):
            head = bytes((layout.PIECE,)) + encode_varint(transfer)
            return head + encode_varint(offset << 1 | stream) + body
        case Taken(transfer, offset, limit):
            head = bytes((layout.TAKEN,)) + encode_varint(transfer) + encode_varint(offset)
            return head + encode_varint(limit - offset)
        case Ending(transfer, status, size, checksum, reason, stream):
            numbers = (transfer, status << 1 | stream, size, checksum)
            return bytes((layout.ENDING, *b"".join(map(encode_varint, numbers)))) + reason.encode()
        case Close(code, retry_after, reason):
            head = bytes((layout.CLOSE,)) + encode_varint(code) + encode_varint(retry_after)
            return head + reason.encode()
        case Hello():
            versions = bytes((layout.HELLO, frame.lowest, frame.highest))
            return _handshake(versions, fields.HELLO.write(frame), frame.features)
        case Welcome():
            version = bytes((layout.WELCOME, frame.version))
            return _handshake(version, fields.WELCOME.write(frame), frame.features)
        case _:
            raise TypeError(f"not a control frame: {type(frame).__name__}")


def _handshake(head: bytes, content: bytes, features: int) -> bytes:
    whole = head + content
    return whole[:1] + sealed(whole[1:]) if features & Feature.CHECKSUMS else whole
