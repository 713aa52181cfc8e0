"""Decoding of the hop protocol: bytes become frames, wherever the network cut the bytes.

One decoder serves one direction of one channel. It expands the shorthand of the peer's encoder, so
that frames have absolute numbers. The peer may be hostile: bytes that are no frame raise a
HopError, at most one incomplete frame is buffered, and after an error nothing more is read.
"""

from __future__ import annotations

from lasthop.errors import FrameTooLarge, HopError, MalformedFrame
from lasthop.message import MAX_KEY
from lasthop.wire.hop import control, fields, layout
from lasthop.wire.hop.frames import (
    DEFAULT_MAX_FRAME,
    MAX_TOPIC,
    Ack,
    Close,
    Feature,
    Frame,
    Headers,
    LaneFrame,
    MessageFrame,
    Welcome,
)
from lasthop.wire.hop.kinds import decode_text
from lasthop.wire.hop.lane_contexts import AckContext, LaneContexts, MessageContext
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.varint import MAX_BYTES, MAX_VALUE, read_varint

ENDS_EARLY = "a message ends early"
BEYOND_63_BITS = "the number or key of a message exceeds 63 bits"

SCANNED = 32 * 1024
"""Bytes of a bundle after which its frames are counted, so that a bundle with too many is not read
to its end."""


class Decoder:
    """Decodes the frames of one direction of one channel.

    `max_frame` is the limit that we announced; it may change between two calls. Frames before an
    error in the same call are not returned: they were not acknowledged and will come again.
    """

    __slots__ = (
        "_buffer",
        "_closed",
        "_delivered",
        "_key",
        "_lanes",
        "_mapping",
        "_need",
        "_next",
        "_received",
        "_topics",
        "max_frame",
    )

    def __init__(self, mapping: Mapping, *, max_frame: int = DEFAULT_MAX_FRAME) -> None:
        self.max_frame = max_frame
        self._mapping = mapping
        self._buffer: bytearray | None = None
        self._need = 0
        self._closed: HopError | Close | None = None
        self._key = 0
        self._topics: list[str] | None = None
        self._lanes: LaneContexts | None = None
        self.begin()

    def allow_lanes(self) -> None:
        """Decode what is about lanes other than lane 0, because both sides have the feature; an
        error otherwise."""
        if self._lanes is None:
            self._lanes = LaneContexts()

    def begin(self, *, next_seq: int = 0, received: int = 0, delivered: int = 0) -> None:
        """Set the counts that the handshake has settled: our received count, and the counts of the
        peer."""
        self._next = next_seq
        self._received = received
        self._delivered = delivered

    @property
    def buffered(self) -> int:
        """Bytes of an incomplete frame that wait for the rest."""
        return len(self._buffer) if self._buffer is not None else 0

    def decode(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        """Return the frames in `data` with `feed` or `decode_unit`, as the mapping requires."""
        return self.feed(data) if self._mapping.streamed else self.decode_unit(data)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        """Return the frames that are complete with the next bytes of a stream; raise HopError."""
        frames: list[Frame] = []
        if self._closed is not None:
            return self._refuse()
        if self._buffer is not None:
            self._buffer += data
            if len(self._buffer) < self._need:
                return frames
            data = bytes(self._buffer)
            self._buffer = None
        elif type(data) is not bytes:
            data = bytes(data)
        try:
            end = self._scan(data, 0, frames)
        except HopError as error:
            self._closed = error
            raise
        if end < len(data) and self._closed is None:
            self._buffer = bytearray(memoryview(data)[end:])
        return frames

    def decode_unit(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        """Return the frames of one datagram, a single frame or a bundle; raise HopError."""
        frames: list[Frame] = []
        if self._closed is not None:
            return self._refuse()
        data = bytes(data)
        try:
            if len(data) > self.max_frame:
                raise FrameTooLarge("a unit is too large", size=len(data), most=self.max_frame)
            if not data:
                raise MalformedFrame("a unit is empty")
            if data[0] != layout.BUNDLE:
                self._decode(data, 0, len(data), frames)
            else:
                self._bundle(data, frames)
        except HopError as error:
            self._closed = error
            raise
        return frames

    def _bundle(self, data: bytes, frames: list[Frame]) -> None:
        at, size = 1, SCANNED
        while at < len(data) and self._closed is None:
            used = self._scan(data[at : at + size], 0, frames)
            if len(frames) > layout.MOST_BUNDLED:
                raise FrameTooLarge("a bundle has too many frames", most=layout.MOST_BUNDLED)
            if not used and at + size >= len(data):
                raise MalformedFrame("a bundle ends inside a frame")
            at += used
            size = SCANNED if used else len(data)

    def _refuse(self) -> list[Frame]:
        # docs/hop-protocol.md, "Closing": what follows a CLOSE is not read, and is no error.
        if isinstance(self._closed, Close):
            return []
        raise MalformedFrame("the channel has failed already")

    def _scan(self, data: bytes, pos: int, frames: list[Frame]) -> int:
        """Decode frames that are preceded by their lengths; return where the first incomplete one
        starts."""
        size = len(data)
        most = self.max_frame
        ordered = self._mapping.ordered
        add = frames.append
        while pos < size:
            # The length, and below it the simplest messages, are read in place: a busy channel
            # spends its time in this loop.
            start = pos + 1
            length = data[pos]
            if length >= 0x80:
                if start < size and 0 < data[start] < 0x80:
                    length += (data[start] << 7) - 0x80
                    start += 1
                else:
                    if size - pos < MAX_BYTES and min(data[pos:]) >= 0x80:
                        self._need = size - pos + 1
                        return pos
                    length, start = read_varint(data, pos)
            end = start + length
            if length > most:
                raise FrameTooLarge("a frame is too large", size=length, most=most)
            if end > size:
                self._need = end - pos
                return pos
            if length == 0:
                raise MalformedFrame("a frame has no type")
            kind = data[start]
            if (kind == 0x80 or kind == 0x90) and ordered:  # noqa: PLR1714
                start += 1
                key = self._key
                if kind == 0x80:
                    key += 1
                else:
                    step, start = read_varint(data, start)
                    key = forward(key, step)
                seq = self._next
                if start > end or key > MAX_KEY or seq > MAX_VALUE:
                    early = start > end
                    raise MalformedFrame(ENDS_EARLY if early else BEYOND_63_BITS)
                self._key = key
                self._next = seq + 1
                add(MessageFrame(seq, key, None, None, data[start:end]))
            else:
                self._decode(data, start, end, frames)
                if self._closed is not None:
                    return size
            pos = end
        return pos

    def _decode(self, data: bytes, start: int, end: int, frames: list[Frame]) -> None:
        kind = data[start]
        if kind >= layout.MESSAGE:
            frames.append(self._message(kind, data, start + 1, end))
            return
        payload = data[start + 1 : end]
        if kind == layout.ADVANCE:
            frames.append(self._advance(payload))
            return
        if kind == layout.LANE and self._lanes is not None:
            frames.append(self._lane_frame(self._lanes, payload))
            return
        frame = control.read(kind, payload)
        if frame is None:
            return
        frames.append(frame)
        if type(frame) is Ack:
            self._received = frame.received
            self._delivered = frame.delivered
        elif type(frame) is Close:
            self._closed = frame
        elif type(frame) is Welcome:
            # Messages may follow in the same bytes, numbered by the counts of this WELCOME.
            first = self._next if frame.resumed else 0
            self.begin(next_seq=first, received=frame.received, delivered=frame.received)
            if frame.features & Feature.LANES:
                self.allow_lanes()

    def _message(self, flags: int, data: bytes, pos: int, end: int) -> MessageFrame:
        if flags & layout.IN_LANE:
            return self._message_in_lane(flags, data, pos, end)
        seq, pos = self._sequence(flags, data, pos)
        key, pos = self._message_key(flags, data, pos)
        topic, headers = None, None
        if flags & layout.TOPIC:
            topic, pos = self._topic(data, pos, end)
        if flags & layout.HEADERS:
            length, start = read_varint(data, pos)
            pos = start + length
            if pos <= end:
                found = fields.HEADERS.read(data[start:pos])
                headers = Headers(**found) if found else None
        if pos > end:
            raise MalformedFrame(ENDS_EARLY)
        return MessageFrame(seq, key, topic, headers, data[pos:end])

    def _message_in_lane(self, flags: int, data: bytes, pos: int, end: int) -> MessageFrame:
        lanes = self._lanes
        # docs/hop-protocol.md, "Lanes": without the feature bit 01 is an error.
        if lanes is None:
            raise MalformedFrame("a message is in a lane, which the handshake did not allow")
        if flags & layout.UNSEQUENCED:
            raise MalformedFrame("a message is marked as unsequenced but has a lane")
        lane, pos = _lane(data, pos)
        context = lanes.next_message(lane, self._key)
        before = self._next, self._key
        self._next, self._key = context
        frame = self._message(flags & ~layout.IN_LANE, data, pos, end)
        lanes.note_message(lane, MessageContext(self._next, self._key))
        self._next, self._key = before
        return MessageFrame(frame.seq, frame.key, frame.topic, frame.headers, frame.body, lane=lane)

    def _lane_frame(self, lanes: LaneContexts, payload: bytes) -> LaneFrame:
        lane, pos = _lane(payload, 0)
        kind = payload[pos] if pos < len(payload) else layout.ADVANCE
        if kind == layout.ADVANCE:
            before = self._received, self._delivered
            self._received, self._delivered = lanes.last_acknowledged(lane)
            frame = LaneFrame(lane, self._advance(payload[pos + 1 :]))
            self._received, self._delivered = before
        else:
            frame = control.read_lane_frame(lane, kind, payload[pos + 1 :])
        ack = frame.frame
        if type(ack) is Ack:
            lanes.note_ack(lane, AckContext(ack.received, ack.delivered))
        return frame

    def _sequence(self, flags: int, data: bytes, pos: int) -> tuple[int | None, int]:
        numbered = flags & layout.NUMBERED
        if flags & layout.UNSEQUENCED:
            if numbered:
                raise MalformedFrame("a message is marked as unsequenced but has a number")
            return None, pos
        seq = self._next
        if numbered:
            seq, pos = read_varint(data, pos)
        # Nothing may be relative there (docs/hop-protocol.md, "Frames and mappings").
        elif not self._mapping.ordered:
            raise MalformedFrame("a message has no number on a mapping without order")
        if seq > MAX_VALUE:
            raise MalformedFrame(BEYOND_63_BITS)
        self._next = seq + 1
        return seq, pos

    def _message_key(self, flags: int, data: bytes, pos: int) -> tuple[int | None, int]:
        form = flags & layout.KEY_BITS
        if form == layout.KEY_NONE:
            return None, pos
        if form == layout.KEY_ABSOLUTE:
            key, pos = read_varint(data, pos)
        elif not self._mapping.ordered:
            raise MalformedFrame("a key is relative on a mapping without order")
        elif form == layout.KEY_NEXT:
            key = self._key + 1
        else:
            step, pos = read_varint(data, pos)
            key = forward(self._key, step)
        if key > MAX_KEY:
            raise MalformedFrame(BEYOND_63_BITS)
        self._key = key
        return key, pos

    def _topic(self, data: bytes, pos: int, end: int) -> tuple[str, int]:
        token, pos = read_varint(data, pos)
        topics = self._topics
        if token:
            if topics is None or token > len(topics):
                raise MalformedFrame("a topic's token was never defined", token=token)
            return topics[token - 1], pos
        length, pos = read_varint(data, pos)
        if pos > end:
            raise MalformedFrame(ENDS_EARLY)
        if length > MAX_TOPIC:
            raise FrameTooLarge("a topic is too long", size=length, most=MAX_TOPIC)
        if pos + length > end:
            raise MalformedFrame("a text is longer than its frame")
        topic = decode_text(data[pos : pos + length])
        if self._mapping.ordered:
            if topics is None:
                topics = self._topics = []
            # docs/hop-protocol.md, "Messages": after 255 tokens a literal topic defines nothing.
            if len(topics) < layout.MAX_TOKEN:
                topics.append(topic)
        return topic, pos + length

    def _advance(self, payload: bytes) -> Ack:
        if not self._mapping.ordered:
            raise MalformedFrame("an acknowledgement is relative on a mapping without order")
        count = control.read_advance(payload)
        self._received += count
        self._delivered += count
        if self._received > MAX_VALUE:
            raise MalformedFrame("the counts in an acknowledgement exceed 63 bits")
        return Ack(self._received, self._delivered)


def _lane(data: bytes, pos: int) -> tuple[int, int]:
    lane, pos = read_varint(data, pos)
    if lane < layout.FIRST_LANE:
        raise MalformedFrame("a lane has an impossible number", lane=lane)
    return lane, pos


def forward(last: int, step: int) -> int:
    """Return the key `step` ahead of `last` on the same node: milliseconds, with the counter in the
    low bits (docs/hop-protocol.md, "Messages")."""
    ms = (last >> layout.TIME_SHIFT) + (step >> layout.FORWARD_BITS)
    counter = step & (layout.FORWARD_LIMIT - 1)
    return ms << layout.TIME_SHIFT | last & layout.NODE_MASK | counter
