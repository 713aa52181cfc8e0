"""One BEEP session: a connection, its greeting and its channels (RFC 3080, 2.3 and 2.4).

An adapter feeds it octets and writes what it wants written. BeepChannel 0 is its own business; what
arrives on other channels comes out as events.
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
"""Octets of a channel that we take at a time: as much as our own unsent buffer holds."""

MOST_CHANNELS = 8
"""Of one session, beside channel 0. A device needs one."""

UNSPECIFIC = 550
"""The reply code for what is not done (RFC 3080, 8)."""

_HEADERS = b"Content-Type: " + CONTENT_TYPE + b"\r\n\r\n"


class Greeted(NamedTuple):
    """The peer is there, and offers these profiles."""

    profiles: tuple[str, ...]


class Started(NamedTuple):
    """A channel is open; `ours` if we asked for it."""

    channel: int
    profile: str
    ours: bool


class ChannelRefused(NamedTuple):
    """The peer will not start a channel that we asked for."""

    channel: int
    code: int
    text: str


class ChannelClosed(NamedTuple):
    """A channel is over."""

    channel: int
    code: int
    text: str


class Over(NamedTuple):
    """The session is over: hang up."""

    text: str


Event: TypeAlias = Greeted | Started | ChannelRefused | ChannelClosed | Over | BeepMessage


class BeepSession:
    """One side of a session. `initiator` is whoever connected."""

    def __init__(
        self,
        *,
        initiator: bool,
        profiles: tuple[str, ...] = (),
        max_message: int,
        throttle: bool = False,
    ) -> None:
        """`profiles` is what we let the peer start; `max_message` bounds what it may send. With
        `throttle` a peer that does not take our replies may send no more; only one of two sides may
        insist on that, or both could wait for each other."""
        self._throttle = throttle
        self._profiles = profiles
        self._max_message = max_message
        self._next_channel = 1 if initiator else 2
        self._peer_parity = 0 if initiator else 1
        self._reader = FrameReader(WINDOW)
        self._zero = BeepChannel(0, "", window=FIRST_WINDOW, max_message=MAX_DOCUMENT + 1024)
        self._channels = {0: self._zero}
        self._asked: dict[int, Callable[[Management], list[Event]]] = {}
        """What to make of the answers to our messages on channel 0."""
        self._out = bytearray()
        self._greeted = False
        self.over = False
        self._zero.greet(_document(Greeting(profiles)))
        self._zero.expect_greeting()
        self._pump()

    # For whoever uses it.

    @property
    def unsent(self) -> int:
        """Octets of messages that the peer's windows have not let through."""
        return sum(channel.unsent for channel in self._channels.values())

    def waiting(self, channel: int) -> int:
        """Octets of one channel that wait."""
        return self._channels[channel].unsent if channel in self._channels else 0

    def limit(self, channel: int, max_message: int) -> None:
        """From now on a message on this channel may be so long."""
        if channel in self._channels:
            self._channels[channel].max_message = max_message

    def start(self, profile: str, *, server_name: str = "") -> int:
        """Ask for a channel; `Started` or `ChannelRefused` follows. Returns its number."""
        number, self._next_channel = self._next_channel, self._next_channel + 2
        start = StartRequest(number, (profile,), server_name)
        self._ask(start, lambda answer: self._start_answered(number, answer))
        return number

    def close(self, channel: int = 0, *, code: int = 200, text: str = "") -> None:
        """Ask for the end of a channel, or of the session; `ChannelClosed` or `Over` follows."""
        if not self.over:
            self._ask(
                CloseRequest(channel, code, text), lambda said: self._close_answered(channel, said)
            )

    def message(self, channel: int, payload: bytes) -> int:
        """Send a message; a reply with the number that this returns follows."""
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
        """Answer a message."""
        if channel in self._channels:
            self._channels[channel].reply(kind, number, payload, answer)
            self._pump()

    def receive(self, data: bytes) -> list[Event]:
        """Take in octets. Raises BeepError when the peer breaks the rules: then hang up."""
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
            if self._throttle and channel.backlog > WINDOW:
                continue
            seq = channel.next_seq()
            if seq is not None:
                self._out += encode(seq)
        return events

    def data_to_send(self) -> bytes:
        """What to write; it is handed out once."""
        out, self._out = bytes(self._out), bytearray()
        return out

    # Within.

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
        """Somebody speaks on channel 0."""
        said = management.read(_content(message.payload))
        if message.kind is BeepKind.MSG:
            return self._wish(message.number, said)
        if not self._greeted:
            if message.kind is not BeepKind.RPY or not isinstance(said, Greeting):
                raise BeepError("the session was not greeted")
            self._greeted = True
            return [Greeted(said.profiles)]
        if message.kind not in (BeepKind.RPY, BeepKind.ERR):
            raise BeepError("channel 0 is answered with RPY or ERR", kind=message.kind.value)
        if isinstance(said, Error) is not (message.kind is BeepKind.ERR):
            raise BeepError("an error comes in an ERR")
        return self._asked.pop(message.number)(said)

    def _wish(self, number: int, said: Management) -> list[Event]:
        """The peer wants a channel to start or to end."""
        if not self._greeted:
            raise BeepError("the session was not greeted")
        if isinstance(said, StartRequest):
            return self._start_wished(number, said)
        if isinstance(said, CloseRequest):
            return self._close_wished(number, said)
        self._answer(number, Error(UNSPECIFIC, "start and close are all that may be asked for"))
        return []

    def _start_wished(self, number: int, start: StartRequest) -> list[Event]:
        profile = next((uri for uri in start.profiles if uri in self._profiles), None)
        problem = ""
        if start.number % 2 != self._peer_parity:
            problem = "the number of the channel is of the wrong kind"
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

    def _close_wished(self, number: int, close: CloseRequest) -> list[Event]:
        if close.number and close.number not in self._channels:
            self._answer(number, Error(UNSPECIFIC, "there is no such channel"))
            return []
        self._answer(number, Ok())
        return self._gone(close.number, close.code, close.text)

    def _start_answered(self, number: int, said: Management) -> list[Event]:
        if isinstance(said, Error):
            return [ChannelRefused(number, said.code, said.text)]
        if not isinstance(said, StartedProfile):
            raise BeepError("a start is answered with a profile")
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
        """Turn by turn, whatever the windows allow."""
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
    """What follows the MIME headers, which for channel 0 say that it is XML (RFC 3080, 2.3.1)."""
    headers, body = entity(payload)
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != CONTENT_TYPE:
        raise BeepError("channel 0 speaks application/beep+xml", type=kind.decode("latin-1"))
    return body


def entity(payload: bytes) -> tuple[dict[bytes, bytes], bytes]:
    """The MIME headers of a message, and what follows them."""
    if payload.startswith(b"\r\n"):
        return {}, payload[2:]
    head, end, body = payload.partition(b"\r\n\r\n")
    if not end or len(head) > 1024:
        raise BeepError("a message has no end of its headers")
    headers = {}
    for line in head.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            raise BeepError("a header has no name")
        headers[name.strip().lower()] = value.strip()
    return headers, body
