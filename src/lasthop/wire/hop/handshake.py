"""The first round trip of a channel: HELLO, and WELCOME or CLOSE.

The type of the object is the channel's phase. The device starts with `Dialing`, the gateway with
`Waiting`; both end in an `Open` connection or are closed. Between the two, `persistence` decides
whether the session's numbering continues.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.errors import HopError, MalformedFrame
from lasthop.wire.hop.accept import preferred
from lasthop.wire.hop.bundling import units
from lasthop.wire.hop.checksums import SIZE as CHECKSUM_SIZE
from lasthop.wire.hop.connection import Open
from lasthop.wire.hop.credit import Meter
from lasthop.wire.hop.decoder import Decoder
from lasthop.wire.hop.encoder import Encoder
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    DEFAULT_WINDOW,
    MAX_HANDSHAKE,
    Close,
    CloseCode,
    Feature,
    Frame,
    Hello,
    Welcome,
)
from lasthop.wire.hop.heartbeat import DEFAULT_INTERVAL, Listening, Pinging
from lasthop.wire.hop.mapping import Mapping
from lasthop.wire.hop.roundtrip import RoundTrip
from lasthop.wire.varint import MAX_BYTES, read_varint

WAIT_FOR_HELLO = 10 * SECOND
"""How long an unknown peer may hold a socket of the gateway; a HELLO is one packet."""

WAIT_FOR_WELCOME = 30 * SECOND
"""How long a device waits: the gateway may have to make a new epoch durable, on the far side of a
satellite."""


class Opened(NamedTuple):
    """The result of a handshake on the device; `frames` came behind the WELCOME."""

    connection: Open
    welcome: Welcome
    frames: list[Frame]


class _Handshake:
    """What both sides have before there is a connection: codec, deadline and the reason of the
    end."""

    __slots__ = ("_deadline", "_decoder", "_encoder", "_mapping", "_units", "closed", "error")

    def __init__(self, mapping: Mapping, deadline: Micros, *, max_frame: int) -> None:
        self._mapping = mapping
        self._deadline = deadline
        self._encoder = Encoder(mapping)
        self._decoder = Decoder(mapping, max_frame=max_frame)
        self._units = units(self._encoder, mapping, bundled=False)
        self.closed: Close | None = None
        self.error: HopError | None = None

    @property
    def max_unit(self) -> int:
        """The most bytes of a unit that the peer may send, its checksum included."""
        return self._decoder.max_frame + CHECKSUM_SIZE

    def data_to_send(self) -> list[bytes]:
        """Return the units to write now; each is returned once."""
        return self._units.take()

    def next_timeout(self) -> Micros | None:
        """Return when to call `timeout`; None once the handshake is closed."""
        return None if self.closed is not None else self._deadline

    def timeout(self, now: Micros) -> None:
        """Close the channel if the handshake has taken too long."""
        due = self.next_timeout()
        if due is not None and now >= due:
            self.close(Close(CloseCode.TIMEOUT, 0, "the handshake took too long"))

    def close(self, close: Close) -> None:
        """Queue a CLOSE for the peer and end the channel."""
        if self.closed is None:
            self._units.add(close)
            self.closed = close

    def _fail(self, error: HopError) -> None:
        self.error = error
        self.close(Close(CloseCode(error.hop_code), 0, str(error)))

    def _bundled(self, features: int) -> bool:
        return bool(features & Feature.BUNDLE)


class Dialing(_Handshake):
    """The device's handshake: its HELLO is sent, and WELCOME is awaited."""

    __slots__ = ("_early", "_hello", "_roundtrip")

    def __init__(
        self, hello: Hello, *, mapping: Mapping, now: Micros, checksums: bool = False
    ) -> None:
        """Start at `now`; with `checksums` they are offered, because the link has no TLS."""
        super().__init__(mapping, now + WAIT_FOR_WELCOME, max_frame=hello.max_frame)
        self._early = b"" if checksums and mapping.streamed else None
        self._roundtrip = RoundTrip(now)
        self._hello = msgspec.structs.replace(
            hello,
            time=self._roundtrip.own_time(now),
            features=ALL_FEATURES
            | (Feature.CHECKSUMS if checksums else 0)
            | (hello.features & Feature.LANES),
        )
        self._units.add(self._hello)
        # Messages may follow the WELCOME at once, numbered from here if the WELCOME resumes.
        self._decoder.begin(next_seq=hello.received)

    @property
    def hello(self) -> Hello:
        """The HELLO that was sent; `persistence.accept` compares it with the WELCOME."""
        return self._hello

    def receive(self, data: bytes | bytearray | memoryview, now: Micros) -> Opened | None:
        """Handle received bytes; return the open connection once the WELCOME is here. Return None
        if it is not here yet, or if the channel is `closed`."""
        if self.closed is not None:
            return None
        rest = b""
        try:
            if self._early is None:
                frames = self._decoder.decode(data)
            else:
                frames, rest = self._first(data)
            if not frames:
                return None
            first = frames.pop(0)
            if isinstance(first, Close):
                self.closed = first
                return None
            if not isinstance(first, Welcome):
                raise MalformedFrame("the first frame is not a WELCOME", frame=_name(first))
        except HopError as error:
            self._fail(error)
            return None
        return self._open(first, frames, rest, now)

    def _first(self, data: bytes | bytearray | memoryview) -> tuple[list[Frame], bytes]:
        """Return the first frame of a stream, none while it is not complete, and what follows it:
        only the first frame tells whether the rest has checksums."""
        early = self._early + bytes(data) if self._early is not None else bytes(data)
        while len(early) >= MAX_BYTES or (early and min(early) < 0x80):
            length, start = read_varint(early, 0)
            end = start + length
            if end > len(early) and length <= self._decoder.max_frame:
                break
            frames = self._decoder.decode(early[:end])
            early = early[end:]
            if frames:
                return frames, early
        self._early = early
        return [], b""

    def _open(self, welcome: Welcome, frames: list[Frame], rest: bytes, now: Micros) -> Opened:
        hello = self._hello
        received, delivered = (hello.received, hello.delivered) if welcome.resumed else (0, 0)
        self._encoder.begin(next_seq=welcome.received, received=received, delivered=delivered)
        self._encoder.max_frame = welcome.max_frame
        self._encoder.preferred = preferred(welcome.accept)
        if welcome.time is not None:
            self._roundtrip.on_own_time(welcome.time, now)
            self._roundtrip.owe()
        if welcome.peer_time is not None:
            self._roundtrip.on_peer_time(welcome.peer_time, now)
        seconds = welcome.heartbeat
        connection = Open(
            decoder=self._decoder,
            units=units(self._encoder, self._mapping, bundled=self._bundled(welcome.features)),
            meter=Meter(hello.window or DEFAULT_WINDOW, received=received),
            heartbeat=Pinging(now, interval=seconds * SECOND if seconds else DEFAULT_INTERVAL),
            roundtrip=self._roundtrip,
            features=welcome.features,
            peer_window=welcome.window or DEFAULT_WINDOW,
        )
        if welcome.features & hello.features & Feature.LANES:
            claims = hello.lanes.lanes if hello.lanes is not None and welcome.resumed else ()
            connection.add_lanes(hello.window or DEFAULT_WINDOW, claims)
        if self._mapping.ordered and welcome.features & self._hello.features & Feature.CHECKSUMS:
            connection.add_checksums(self._mapping)
        frames = connection.proceed(frames, now)
        if rest:
            frames += connection.receive(rest, now)
        return Opened(connection, welcome, frames)


class Waiting(_Handshake):
    """The gateway's handshake: a peer has connected, and its HELLO is awaited."""

    __slots__ = ("_hello", "_roundtrip")

    def __init__(self, *, mapping: Mapping, now: Micros) -> None:
        super().__init__(mapping, now + WAIT_FOR_HELLO, max_frame=MAX_HANDSHAKE)
        self._roundtrip = RoundTrip(now)
        self._hello: Hello | None = None

    def next_timeout(self) -> Micros | None:
        """Return when to call `timeout`; None once the HELLO is here, while the gateway works on
        its answer."""
        return None if self._hello is not None else super().next_timeout()

    def receive(self, data: bytes | bytearray | memoryview, now: Micros) -> Hello | None:
        """Handle received bytes; return the HELLO, which is to be answered, when it is complete."""
        if self.closed is not None:
            return None
        said = None
        try:
            for frame in self._decoder.decode(data):
                if isinstance(frame, Close):
                    self.closed = frame
                # docs/hop-protocol.md, "Handshake and persistence": before WELCOME only CLOSE may
                # follow.
                elif self._hello is not None:
                    raise MalformedFrame("a frame came before the WELCOME", frame=_name(frame))
                elif not isinstance(frame, Hello):
                    raise MalformedFrame("the first frame is not a HELLO", frame=_name(frame))
                else:
                    self._hello = said = frame
        except HopError as error:
            self._fail(error)
        if said is not None and said.time is not None:
            self._roundtrip.on_own_time(said.time, now)
        return said if self.closed is None else None

    def welcome(self, welcome: Welcome, now: Micros) -> Open:
        """Answer the HELLO and return the open connection; fills in times and common features.
        Lanes are granted by the `welcome`."""
        hello = self._hello
        if hello is None:
            raise ValueError("there is no HELLO to answer")
        lanes = welcome.features & Feature.LANES
        features = (ALL_FEATURES | Feature.CHECKSUMS | lanes) & hello.features
        welcome = msgspec.structs.replace(
            welcome,
            features=int(features),
            time=self._roundtrip.own_time(now),
            peer_time=self._roundtrip.peer_time(now),
        )
        received, delivered = (hello.received, hello.delivered) if welcome.resumed else (0, 0)
        self._encoder.begin(
            next_seq=received, received=welcome.received, delivered=welcome.received
        )
        self._decoder.begin(next_seq=welcome.received, received=received, delivered=delivered)
        self._decoder.max_frame = welcome.max_frame
        seconds = welcome.heartbeat
        connection = Open(
            decoder=self._decoder,
            units=units(self._encoder, self._mapping, bundled=self._bundled(features)),
            meter=Meter(welcome.window or DEFAULT_WINDOW, received=welcome.received),
            heartbeat=Listening(now, interval=seconds * SECOND if seconds else DEFAULT_INTERVAL),
            roundtrip=self._roundtrip,
            features=features,
            peer_window=hello.window or DEFAULT_WINDOW,
        )
        # The device may have closed the channel meanwhile: then nothing is sent.
        connection.closed = self.closed
        connection.send((welcome,), now)
        if features & Feature.LANES:
            claims = welcome.lanes.lanes if welcome.lanes is not None and welcome.resumed else ()
            connection.add_lanes(welcome.window or DEFAULT_WINDOW, claims)
        if self._mapping.ordered and features & Feature.CHECKSUMS:
            connection.add_checksums(self._mapping)
        self._roundtrip.ask()
        # Set only now: WELCOME itself has the limit of the handshake.
        self._encoder.max_frame = hello.max_frame
        self._encoder.preferred = preferred(hello.accept)
        return connection


def _name(frame: Frame) -> str:
    return type(frame).__name__.removesuffix("Frame").upper()
