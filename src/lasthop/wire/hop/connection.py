"""An open channel, sans-I/O: the mobility modules composed over one mapping.

An adapter feeds it bytes and the time and writes what it wants written; a session above it gets
messages and acknowledgements and hands it frames. Codec, credit, round trips and heartbeat are its
own business. `handshake` makes it, in either role.
"""

from __future__ import annotations

from collections.abc import Iterable

from lasthop.clock import Micros
from lasthop.errors import HopError, MalformedFrame
from lasthop.wire.hop.bundling import FLUSH_SIZE, DatagramUnits, StreamUnits
from lasthop.wire.hop.credit import Meter
from lasthop.wire.hop.decoder import Decoder
from lasthop.wire.hop.frames import (
    Ack,
    Close,
    CloseCode,
    Credit,
    Dropped,
    Ending,
    Feature,
    Frame,
    MessageFrame,
    Piece,
    Ping,
    Pong,
    Skip,
    Taken,
    Time,
    Wanted,
)
from lasthop.wire.hop.heartbeat import UNHEARD, Beat, Heartbeat
from lasthop.wire.hop.roundtrip import RoundTrip

_FOR_THE_SESSION = (Ack, Piece, Taken, Skip, Dropped, Ending, Wanted)


class Open:
    """A channel after its handshake; the same on both sides but for the heartbeat.

    It never raises for what the peer does: then it is `closed`, with the CLOSE for the peer among
    what is to be sent.
    """

    __slots__ = (
        "_credit_from",
        "_decoder",
        "_meter",
        "_units",
        "closed",
        "error",
        "features",
        "heartbeat",
        "peer_window",
        "roundtrip",
    )

    def __init__(
        self,
        *,
        decoder: Decoder,
        units: StreamUnits | DatagramUnits,
        meter: Meter,
        heartbeat: Heartbeat,
        roundtrip: RoundTrip,
        features: int,
        peer_window: Credit,
    ) -> None:
        self._decoder = decoder
        self._units = units
        self._meter = meter
        self.heartbeat = heartbeat
        self.roundtrip = roundtrip
        self.features = features
        self._credit_from = 0
        self.peer_window = peer_window
        """What the peer lets us have unacknowledged; `credit.admits` applies it."""
        self.closed: Close | None = None
        """Why the channel ended, in the words of whoever ended it."""
        self.error: HopError | None = None
        """What the peer did wrong, if that was the reason."""

    @property
    def max_unit(self) -> int:
        """Bytes of a unit that the peer may send."""
        return self._decoder.max_frame

    @property
    def full(self) -> bool:
        """Whether to write before sending more: what is encoded can no longer expire."""
        return self._units.pending >= FLUSH_SIZE

    def receive(self, data: bytes | bytearray | memoryview, now: Micros) -> list[Frame]:
        """Take in what arrived; returns messages and what is said of numbers and credit.

        On a datagram mapping `data` is one unit.
        """
        if self.closed is not None:
            return []
        try:
            frames = self._decoder.decode(data)
        except HopError as error:
            self.fail(error, now)
            return []
        return self.proceed(frames, now)

    def receive_unit(self, data: bytes, number: int, now: Micros) -> list[Frame]:
        """Take in a unit of a mapping that numbers them, where they may overtake one another: a
        window that was granted before the last one that we know is no news."""
        if self.closed is not None:
            return []
        try:
            frames = self._decoder.decode(data)
        except HopError as error:
            self.fail(error, now)
            return []
        if any(type(frame) is Credit for frame in frames):
            if number < self._credit_from:
                frames = [frame for frame in frames if type(frame) is not Credit]
            self._credit_from = max(self._credit_from, number)
        return self.proceed(frames, now)

    def proceed(self, frames: list[Frame], now: Micros) -> list[Frame]:
        """Deal with decoded frames; returns those that are not the channel's own business."""
        waited = self.heartbeat.on_received(now)
        events: list[Frame] = []
        try:
            for frame in frames:
                if type(frame) is MessageFrame:
                    if frame.seq is not None:
                        self._meter.take(frame.seq, len(frame.body))
                    events.append(frame)
                elif isinstance(frame, _FOR_THE_SESSION):
                    events.append(frame)
                elif type(frame) is Credit:
                    self.peer_window = frame
                    events.append(frame)
                else:
                    self._control(frame, now, waited)
        except HopError as error:
            self.fail(error, now)
            return []
        return events

    def _control(self, frame: Frame, now: Micros, waited: Micros | None) -> None:
        match frame:
            case Ping():
                self.send((Pong(),), now)
            case Pong():
                # Only an answer that is the first thing to arrive says how long the way took.
                if waited is not None:
                    self.roundtrip.sample(waited)
            case Time():
                self.roundtrip.on_time(frame, now)
            case Close():
                self.closed = frame
            case _:
                raise MalformedFrame(
                    "a handshake comes only once", frame=type(frame).__name__.upper()
                )

    def send(self, frames: Iterable[Frame], now: Micros) -> None:
        """Encode frames behind what already waits to be written.

        On a closed channel this does nothing: what is not acknowledged stays with the session.
        """
        if self.closed is not None:
            return
        for frame in frames:
            self._units.add(frame)
            if type(frame) is Ack:
                self._meter.acknowledge(frame.received)
            elif type(frame) is Credit:
                self._meter.grant(frame)
        self.heartbeat.on_sent(now)
        if self.features & Feature.TIME:
            time = self.roundtrip.time_to_send(now, self._units.pending)
            if time is not None:
                self._units.add(time)

    def sent_elsewhere(self, frames: Iterable[Frame]) -> None:
        """The peer was told this over another channel of the session."""
        for frame in frames:
            if type(frame) is Ack:
                self._meter.acknowledge(frame.received)
            elif type(frame) is Credit:
                self._meter.grant(frame)

    def data_to_send(self) -> list[bytes]:
        """What to write now, unit by unit; it is handed out once."""
        return self._units.take()

    def next_timeout(self) -> Micros | None:
        """When to call `timeout`, unless something arrives or is sent before."""
        return None if self.closed is not None else self.heartbeat.next_due()

    def timeout(self, now: Micros) -> None:
        """Time has passed: ping, or give the channel up."""
        if self.closed is not None:
            return
        beat = self.heartbeat.check(now)
        if beat is Beat.PING:
            self._units.add(Ping())
        elif beat is Beat.DEAD:
            self.close(Close(CloseCode.TIMEOUT, 0, UNHEARD), now)

    def close(self, close: Close, now: Micros) -> None:
        """Say the last word."""
        self.send((close,), now)
        if self.closed is None:
            self.closed = close

    def fail(self, error: HopError, now: Micros) -> None:
        """Close because of what the peer did."""
        self.error = error
        self.close(Close(CloseCode(error.hop_code), 0, str(error)), now)
