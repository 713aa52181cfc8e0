"""One BEEP session: a connection, its greeting and its channels (RFC 3080, 2.3 and 2.4).

An adapter feeds the session octets and writes the octets that it returns. The session handles
channel 0 itself; messages on other channels come out as events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from lasthop.wire.beep import management
from lasthop.wire.beep.channel import FIRST_WINDOW, BeepChannel, BeepMessage
from lasthop.wire.beep.errors import BeepError
from lasthop.wire.beep.frames import BeepData, BeepKind, Frame, FrameReader, Seq, encode
from lasthop.wire.beep.management import (
    CONTENT_TYPE,
    MAX_DOCUMENT,
    CloseRequest,
    Error,
    Greeting,
    Management,
    Ok,
    StartedProfile,
    StartRequest,
)

WINDOW = 64 * 1024
"""Octets of a channel that we accept at a time: as many as our own unsent buffer holds."""

MOST_CHANNELS = 8
"""The largest number of channels of one session beside channel 0. A device needs one."""

UNSPECIFIC = 550
"""The reply code for a request that was not carried out (RFC 3080, 8)."""

_HEADERS = b"Content-Type: " + CONTENT_TYPE + b"\r\n\r\n"


class Greeted(NamedTuple):
    """The peer has sent its greeting, with the profiles that it offers."""

    profiles: tuple[str, ...]


class Started(NamedTuple):
    """A channel is open; `ours` says whether this side asked for it."""

    channel: int
    profile: str
    ours: bool


class ChannelRefused(NamedTuple):
    """The peer refused to start a channel that this side asked for."""

    channel: int
    code: int
    text: str


class ChannelClosed(NamedTuple):
    """A channel was closed, with the code and text that were given."""

    channel: int
    code: int
    text: str


class Over(NamedTuple):
    """The session is closed: close the connection."""

    text: str


Event: TypeAlias = Greeted | Started | ChannelRefused | ChannelClosed | Over | BeepMessage


class BeepSession:
    """One side of a session. `initiator` is the side that opened the connection."""

    def __init__(
        self,
        *,
        initiator: bool,
        profiles: tuple[str, ...] = (),
        max_message: int,
        throttle: bool = False,
    ) -> None:
        """Queue the greeting. `profiles` are those that the peer may start; `max_message` limits
        the octets of its messages. With `throttle` a peer that does not accept our replies may send
        no more; only one of two sides may set it, or both could wait for each other."""
        self._throttle = throttle
        self._profiles = profiles
        self._max_message = max_message
        # RFC 3080, 2.3.1.2: the initiator starts channels with odd numbers, the listener with even
        # ones.
        self._next_channel = 1 if initiator else 2
        self._peer_parity = 0 if initiator else 1
        self._reader = FrameReader(WINDOW)
        self._zero = BeepChannel(0, "", window=FIRST_WINDOW, max_message=MAX_DOCUMENT + 1024)
        self._channels = {0: self._zero}
        self._asked: dict[int, Callable[[Management], list[Event]]] = {}
        """For each unanswered message of ours on channel 0, the function that handles the
        answer."""
        self._out = bytearray()
        self._greeted = False
        self.over = False
        self._zero.greet(_document(Greeting(profiles)))
        self._zero.expect_greeting()
        self._pump()

    # For the session's owner.

    @property
    def unsent(self) -> int:
        """Octets of messages on all channels that the peer's windows have not let through."""
        return sum(channel.unsent for channel in self._channels.values())

    def waiting(self, channel: int) -> int:
        """Return the octets of one channel that wait to be sent."""
        return self._channels[channel].unsent if channel in self._channels else 0

    def limit(self, channel: int, max_message: int) -> None:
        """Set the largest size in octets of a message that the peer may send on this channel."""
        if channel in self._channels:
            self._channels[channel].max_message = max_message

    def start(self, profile: str, *, server_name: str = "") -> int:
        """Ask the peer for a channel and return its number; `Started` or `ChannelRefused`
        follows."""
        number, self._next_channel = self._next_channel, self._next_channel + 2
        start = StartRequest(number, (profile,), server_name)
        self._ask(start, lambda answer: self._start_answered(number, answer))
        return number

    def close(self, channel: int = 0, *, code: int = 200, text: str = "") -> None:
        """Ask the peer to close a channel or the session; `ChannelClosed` or `Over` follows."""
        if not self.over:
            self._ask(
                CloseRequest(channel, code, text), lambda said: self._close_answered(channel, said)
            )

    def message(self, channel: int, payload: bytes) -> int:
        """Send a message and return its number; a reply with the same number follows."""
        number = self._channel(channel).message(payload)
        self._pump()
        return number

    def reply(
        self,
        channel: int,
        number: int,
        payload: bytes = b"",
        *,
        kind: BeepKind = BeepKind.RPY,
        answer: int | None = None,
    ) -> None:
        """Answer a message of the peer; do nothing when its channel is closed."""
        if channel in self._channels:
            self._channels[channel].reply(kind, number, payload, answer)
            self._pump()

    def receive(self, data: bytes) -> list[Event]:
        """Handle received octets and return the events in them. Raise BeepError when the peer
        breaks the rules: then close the connection."""
        events: list[Event] = []
        if self.over:
            return events
        try:
            for frame in self._reader.feed(data):
                events += self._take(frame)
        except BeepError:
            self.over = True
            raise
        self._pump()
        for channel in self._channels.values():
            # A peer that does not read our replies gets no new window until it does.
            if self._throttle and channel.backlog > WINDOW:
                continue
            seq = channel.next_seq()
            if seq is not None:
                self._out += encode(seq)
        return events

    def data_to_send(self) -> bytes:
        """Return the octets to write now; each is returned once."""
        out, self._out = bytes(self._out), bytearray()
        return out

    # Internal.

    def _take(self, frame: Frame) -> list[Event]:
        if self.over:
            return []
        channel = self._channel(frame.channel)
        if isinstance(frame, Seq):
            channel.allow(frame)
            return []
        message = channel.take(frame)
        if message is None:
            return []
        if frame.channel:
            return [message]
        return self._managed(message)

    def _channel(self, number: int) -> BeepChannel:
        channel = self._channels.get(number)
        if channel is None:
            raise BeepError("there is no such channel", channel=number)
        return channel

    def _managed(self, message: BeepMessage) -> list[Event]:
        """Handle a message on channel 0: the greeting, a request of the peer or an answer to
        ours."""
        said = management.read(_content(message.payload))
        if message.kind is BeepKind.MSG:
            return self._requested(message.number, said)
        if not self._greeted:
            if message.kind is not BeepKind.RPY or not isinstance(said, Greeting):
                raise BeepError("the peer did not begin with a greeting")
            self._greeted = True
            return [Greeted(said.profiles)]
        if message.kind not in (BeepKind.RPY, BeepKind.ERR):
            raise BeepError(
                "a message on channel 0 must be answered with RPY or ERR", kind=message.kind.value
            )
        if isinstance(said, Error) is not (message.kind is BeepKind.ERR):
            raise BeepError("an error must be in an ERR, and only there")
        return self._asked.pop(message.number)(said)

    def _requested(self, number: int, said: Management) -> list[Event]:
        """Answer the peer's request to start or close a channel."""
        if not self._greeted:
            raise BeepError("the peer did not begin with a greeting")
        if isinstance(said, StartRequest):
            return self._start_requested(number, said)
        if isinstance(said, CloseRequest):
            return self._close_requested(number, said)
        self._answer(number, Error(UNSPECIFIC, "channel 0 takes requests for start and close only"))
        return []

    def _start_requested(self, number: int, start: StartRequest) -> list[Event]:
        profile = next((uri for uri in start.profiles if uri in self._profiles), None)
        problem = ""
        if start.number % 2 != self._peer_parity:
            problem = "an initiator starts odd channels, a listener even ones"
        elif start.number in self._channels:
            problem = "the number of the channel is taken"
        elif len(self._channels) > MOST_CHANNELS:
            problem = f"a session has {MOST_CHANNELS} channels"
        elif profile is None:
            problem = "none of these profiles is known"
        if problem or profile is None:
            self._answer(number, Error(501 if profile is not None else UNSPECIFIC, problem))
            return []
        self._open(start.number, profile)
        self._answer(number, StartedProfile(profile))
        return [Started(start.number, profile, ours=False)]

    def _close_requested(self, number: int, close: CloseRequest) -> list[Event]:
        if close.number and close.number not in self._channels:
            self._answer(number, Error(UNSPECIFIC, "there is no such channel"))
            return []
        self._answer(number, Ok())
        return self._gone(close.number, close.code, close.text)

    def _start_answered(self, number: int, said: Management) -> list[Event]:
        if isinstance(said, Error):
            return [ChannelRefused(number, said.code, said.text)]
        if not isinstance(said, StartedProfile):
            raise BeepError("a start must be answered with a profile")
        self._open(number, said.uri)
        return [Started(number, said.uri, ours=True)]

    def _close_answered(self, number: int, said: Management) -> list[Event]:
        if isinstance(said, Ok):
            return self._gone(number, 200, "")
        return []

    def _gone(self, number: int, code: int, text: str) -> list[Event]:
        if number:
            return [ChannelClosed(number, code, text)] if self._channels.pop(number, None) else []
        self.over = True
        return [Over(text or "the session was closed")]

    def _open(self, number: int, profile: str) -> None:
        channel = BeepChannel(number, profile, window=WINDOW, max_message=self._max_message)
        self._channels[number] = channel

    def _ask(self, said: Management, answered: Callable[[Management], list[Event]]) -> None:
        self._asked[self._zero.message(_document(said))] = answered
        self._pump()

    def _answer(self, number: int, said: Management) -> None:
        kind = BeepKind.ERR if isinstance(said, Error) else BeepKind.RPY
        self._zero.reply(kind, number, _document(said))
        self._pump()

    def _pump(self) -> None:
        """Encode what the windows allow, one frame of each channel in turn."""
        more = True
        while more:
            more = False
            for channel in self._channels.values():
                frame: BeepData | None = channel.next_frame()
                if frame is not None:
                    self._out += encode(frame)
                    more = True


def _document(said: Management) -> bytes:
    return _HEADERS + management.write(said)


def _content(payload: bytes) -> bytes:
    """Return the body after the MIME headers, which on channel 0 must say that it is XML (RFC 3080,
    2.3.1)."""
    headers, body = entity(payload)
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != CONTENT_TYPE:
        raise BeepError(
            "messages on channel 0 must be application/beep+xml", type=kind.decode("latin-1")
        )
    return body


def entity(payload: bytes) -> tuple[dict[bytes, bytes], bytes]:
    """Split a message into its MIME headers and its body; raise BeepError."""
    if payload.startswith(b"\r\n"):
        return {}, payload[2:]
    head, end, body = payload.partition(b"\r\n\r\n")
    if not end or len(head) > 1024:
        raise BeepError("the headers of a message do not end")
    headers = {}
    for line in head.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            raise BeepError("a header has no name")
        headers[name.strip().lower()] = value.strip()
    return headers, body
