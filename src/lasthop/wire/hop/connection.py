"""An open channel without I/O: codec, credit, round trips and heartbeat over one mapping.

An adapter feeds the channel bytes and the time, and writes the bytes that it returns; a session
above gets messages and acknowledgements and hands over frames. `handshake` makes the channel, in
either role.
"""

from __future__ import annotations

from collections.abc import Iterable

from lasthop.clock import Micros
from lasthop.errors import DamagedWrite, HopError, MalformedFrame
from lasthop.wire.hop.bundling import FLUSH_SIZE, DatagramUnits, StreamUnits
from lasthop.wire.hop.checksums import SIZE as CHECKSUM_SIZE, STALLED, CheckedStream, CheckedUnits
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
    LaneClaim,
    LaneFrame,
    MessageFrame,
    OtherWays,
    Piece,
    Ping,
    Pong,
    Skip,
    Taken,
    Time,
    Wanted,
)
from lasthop.wire.hop.heartbeat import UNHEARD, Beat, Heartbeat
from lasthop.wire.hop.lane_credit import LaneMeters
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.hop.roundtrip import RoundTrip

_FOR_THE_SESSION = (
    Ack,
    Piece,
    Taken,
    Skip,
    Dropped,
    Ending,
    Wanted,
    OtherWays,
    LaneFrame,
)


class Open:
    """A channel after its handshake; the same on both sides but for the heartbeat.

    The channel never raises for what the peer does: it becomes `closed`, and a CLOSE for the peer
    is among the data to send.
    """

    __slots__ = (
        "_checks",
        "_credit_from",
        "_decoder",
        "_lanes",
        "_meter",
        "_stalled_at",
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
        self._lanes: LaneMeters | None = None
        """The windows of lanes other than lane 0; None without the feature."""
        self.heartbeat = heartbeat
        self.roundtrip = roundtrip
        self.features = features
        self._checks: CheckedStream | CheckedUnits | None = None
        """Takes the checksums from what arrives, if there are any."""
        self._stalled_at: Micros | None = None
        """When a write that has begun to arrive has been without its rest for too long."""
        self._credit_from = 0
        self.peer_window = peer_window
        """The peer's window: how much may be unacknowledged on its side; `credit.admits` applies
        it."""
        self.closed: Close | None = None
        """The CLOSE that ended the channel, from either side; None while it is open."""
        self.error: HopError | None = None
        """The peer's error, if that was why the channel ended."""

    @property
    def max_unit(self) -> int:
        """The most bytes of a unit that the peer may send, its checksum included."""
        return self._decoder.max_frame + CHECKSUM_SIZE

    @property
    def full(self) -> bool:
        """Whether so many bytes wait to be written that no more frames should be encoded now: an
        encoded frame can no longer expire."""
        return self._units.pending >= FLUSH_SIZE

    def add_lanes(self, window: Credit, claims: Iterable[LaneClaim]) -> None:
        """Allow lanes other than lane 0, with what this side has of the peer's lanes."""
        self._lanes = LaneMeters(window, claims)
        self._decoder.allow_lanes()

    def add_checksums(self, mapping: Mapping) -> None:
        """Check what arrives from here on by its checksums, and add them to what is sent."""
        self._checks = CheckedStream() if mapping.streamed else CheckedUnits()
        self._units.add_checksums()

    def receive(self, data: bytes | bytearray | memoryview, now: Micros) -> list[Frame]:
        """Handle received bytes; return the frames for the session: messages, acknowledgements,
        credit, pieces.

        On a datagram mapping `data` is one unit.
        """
        if self.closed is not None:
            return []
        checks = self._checks
        try:
            if checks is not None:
                data = checks.feed(data, max_frame=self._decoder.max_frame)
                self._stalled_at = now + STALLED if checks.partial else None
                if not data:
                    self.heartbeat.on_received(now)
                    return []
            frames = self._decoder.decode(data)
        except HopError as error:
            self.fail(error, now)
            return []
        return self.proceed(frames, now)

    def receive_unit(self, data: bytes, number: int, now: Micros) -> list[Frame]:
        """Handle a received unit of a mapping that numbers its units, which may overtake one
        another; return the frames for the session. A CREDIT older than the newest one is ignored
        (docs/hop-protocol.md, "HTTP requests")."""
        if self.closed is not None:
            return []
        try:
            frames = self._decoder.decode(data)
        except HopError as error:
            self.fail(error, now)
            return []
        if any(_is_credit(frame) for frame in frames):
            # A request with a lower number may arrive later, but its CREDIT is older.
            if number < self._credit_from:
                frames = [frame for frame in frames if not _is_credit(frame)]
            self._credit_from = max(self._credit_from, number)
        return self.proceed(frames, now)

    def proceed(self, frames: list[Frame], now: Micros) -> list[Frame]:
        """Handle decoded frames; return those that are for the session."""
        waited = self.heartbeat.on_received(now)
        events: list[Frame] = []
        try:
            for frame in frames:
                if type(frame) is MessageFrame:
                    if frame.seq is not None:
                        if frame.lane and self._lanes is not None:
                            self._lanes.take(frame.lane, frame.seq, len(frame.body))
                        else:
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
                # A PONG measures the round trip only if nothing else arrived before it.
                if waited is not None:
                    self.roundtrip.sample(waited)
            case Time():
                self.roundtrip.on_time(frame, now)
            case Close():
                self.closed = frame
            case _:
                raise MalformedFrame(
                    "a handshake frame came a second time", frame=type(frame).__name__.upper()
                )

    def send(self, frames: Iterable[Frame], now: Micros) -> None:
        """Encode frames behind those that wait to be written.

        On a closed channel this does nothing: what is not acknowledged stays with the session.
        """
        if self.closed is not None:
            return
        for frame in frames:
            self._units.add(frame)
            self._said(frame)
        self.heartbeat.on_sent(now)
        if self.features & Feature.TIME:
            time = self.roundtrip.time_to_send(now, self._units.pending)
            if time is not None:
                self._units.add(time)

    def sent_elsewhere(self, frames: Iterable[Frame]) -> None:
        """Note that acknowledgements and credit were sent to the peer over another channel of the
        session."""
        for frame in frames:
            self._said(frame)

    def _said(self, frame: Frame) -> None:
        """Count what the peer may send from here on."""
        if type(frame) is Ack:
            self._meter.acknowledge(frame.received)
        elif type(frame) is Credit:
            self._meter.grant(frame)
            if self._lanes is not None:
                self._lanes.grant(frame)
        elif type(frame) is LaneFrame and self._lanes is not None:
            self._lanes.said(frame)

    def data_to_send(self) -> list[bytes]:
        """Return the units to write now; each is returned once."""
        return self._units.take()

    def next_timeout(self) -> Micros | None:
        """Return when to call `timeout`, unless something arrives or is sent before."""
        if self.closed is not None:
            return None
        due = self.heartbeat.next_due()
        return due if self._stalled_at is None else min(due, self._stalled_at)

    def timeout(self, now: Micros) -> None:
        """Send a PING, or close the channel because the peer has been silent for too long."""
        if self.closed is not None:
            return
        if self._stalled_at is not None and now >= self._stalled_at:
            self.fail(DamagedWrite("the rest of what was written did not come"), now)
            return
        beat = self.heartbeat.check(now)
        if beat is Beat.PING:
            self._units.add(Ping())
        elif beat is Beat.DEAD:
            self.close(Close(CloseCode.TIMEOUT, 0, UNHEARD), now)

    def close(self, close: Close, now: Micros) -> None:
        """Queue a CLOSE for the peer and end the channel."""
        self.send((close,), now)
        if self.closed is None:
            self.closed = close

    def fail(self, error: HopError, now: Micros) -> None:
        """Close the channel because of an error of the peer."""
        self.error = error
        self.close(Close(CloseCode(error.hop_code), 0, str(error)), now)


def _is_credit(frame: Frame) -> bool:
    return type(frame) is Credit or (type(frame) is LaneFrame and type(frame.frame) is Credit)
