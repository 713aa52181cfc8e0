"""How a feature takes part in the life of a device's session, without the core knowing its name.

The core knows a part only by its moments: the methods here do nothing, and a part overrides those
in which it takes part. `session` lists all parts; they do not know one another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lasthop.clock import Micros
from lasthop.device.change import Change
from lasthop.device.message import Message, Refusal
from lasthop.device.outgoing import Outgoing
from lasthop.device.session_events import SessionEvent
from lasthop.wire.hop.frames import Frame, Headers, Hello, MessageFrame, Operation, Welcome


class DevicePart:
    """What a session has of one feature."""

    word: Operation | None = None
    """The operation by which the gateway speaks to the part."""
    takes_late = False
    """Whether the part claims a message also after the message's deadline."""

    # What comes in.

    def frames_taken(self) -> Mapping[type[Frame], Callable[[Any, Micros], None]]:
        """Frames that are neither messages nor acknowledgements, and who takes them."""
        return {}

    def whole(self, frame: MessageFrame, headers: Headers) -> MessageFrame | None:
        """A message with headers as it is to arrive. None: as if it had been lost."""
        return frame

    def claims(self, message: Message, headers: Headers, now: Micros) -> bool:
        """A message with headers is new, and its turn has come. True: it is the part's."""
        return False

    def came_again(self, message: Message) -> None:
        """The application has had this message before; its new number is about to be closed."""

    def cut_off(self, message: Message, *, related: bool) -> bool:
        """A new epoch began while the message waited behind a gap. True: the part has dealt with
        it."""
        return False

    def ended(self, message: Message, *, had: bool) -> None:
        """The application is done with a message, or never gets it."""

    def shown_by(self, control: Message) -> list[int]:
        """The keys that the gateway's word lets the application see. Raises when it is no word."""
        raise NotImplementedError

    def follow(self, control: Message, now: Micros) -> None:
        """Do as the gateway says."""
        raise NotImplementedError

    def partly_shown(self, had: list[int]) -> None:
        """Of what the gateway let the application see, it had only this."""

    # The channel.

    def welcomed(self, hello: Hello, welcome: Welcome, now: Micros) -> None:
        """The gateway has said what it has."""

    def joined(self) -> None:
        """There is one more channel."""

    def started_over(self, *, related: bool) -> None:
        """A new epoch began, with a gateway that knows the old one if it is `related`."""

    def rerouted(self, channel: int) -> None:
        """One of several channels has ended."""

    def lost(self) -> None:
        """No channel is open any more."""

    def link_up(self, channel: int, label: str, round_trip: Micros | None) -> None:
        """Messages may leave over this channel."""

    def link_paused(self, channel: int, paused: bool) -> None:
        """A channel's unsent buffer is full, or has room again."""

    # What goes out.

    def frames(self, *, room: bool, piece: bool) -> list[Frame]:
        """What leaves over the channel that is spoken over, after messages: without room only what
        takes next to none, with `piece` one as the last."""
        return []

    def accepted(self, items: list[Outgoing], now: Micros) -> None:
        """The gateway has these messages of ours."""

    def fails(self, item: Outgoing, refusal: Refusal) -> bool:
        """A message of ours cannot leave. True: nobody else is to be told."""
        return False

    def refused(self, key: int) -> None:
        """The gateway will not act on a message of ours, or never gets it."""

    # Time, and what has to survive.

    def expire(self, now: Micros) -> None:
        """Let go what is past its deadline."""

    def next_expiry(self) -> Micros | None:
        """When `expire` has something to do."""
        return None

    def before_change(self) -> None:
        """The next change is about to be collected."""

    def collect(self, change: Change) -> None:
        """Put into `change` what has to survive."""

    def committed(self, n: int) -> None:
        """Change `n`, and all before it, is durable."""

    def takes_back(self, message: Message) -> bool:
        """After a restart: a message of the inbox whose turn had come. True: it is the part's."""
        return False

    def keeps_again(self, message: Message, rank: float) -> bool:
        """After a restart: a message that was kept outside the inbox. True: it is the part's."""
        return False

    def restored(self) -> None:
        """After a restart: everything is back."""

    # For the owner.

    def session_events(self) -> Iterable[SessionEvent]:
        """What the application may want to know, since the last time."""
        return ()


def moments(parts: Iterable[DevicePart], name: str) -> list[Callable[..., Any]]:
    """The methods of this name of those parts that override it: all others cost nothing."""
    base = getattr(DevicePart, name)
    return [getattr(part, name) for part in parts if getattr(type(part), name) is not base]
