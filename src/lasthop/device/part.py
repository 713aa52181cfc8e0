"""How a feature takes part in a device's session without the core knowing its name.

The core calls a part only through the methods here; they do nothing, and a part overrides those
that concern it. `session` lists all parts; they do not know one another.
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
    """The state that one feature keeps for a device's session."""

    word: Operation | None = None
    """The operation of the gateway's instructions to this part; None if it takes none."""
    takes_late = False
    """Whether the part claims a message also after the message's deadline."""

    # What comes in.

    def frames_taken(self) -> Mapping[type[Frame], Callable[[Any, Micros], None]]:
        """Return the functions that take frames that are neither messages nor acks, by frame
        type."""
        return {}

    def whole(self, frame: MessageFrame, headers: Headers) -> MessageFrame | None:
        """Return a message with headers as it is to arrive; None drops it as if it had been
        lost."""
        return frame

    def claims(self, message: Message, headers: Headers, now: Micros) -> bool:
        """Whether the part takes a new message with headers whose turn has come."""
        return False

    def came_again(self, message: Message) -> None:
        """Note that a message came again which the application is done with; its new number will be
        closed."""

    def cut_off(self, message: Message, *, related: bool) -> bool:
        """Whether the part deals with a message that waited behind a gap when a new epoch began."""
        return False

    def ended(self, message: Message, *, had: bool) -> None:
        """Note that the application is done with a message, or (`had` is False) never gets it."""

    def shown_by(self, control: Message) -> list[int]:
        """Return the keys of the messages that the gateway's instruction lets the application see.
        Raises if the instruction cannot be decoded."""
        raise NotImplementedError

    def follow(self, control: Message, now: Micros) -> None:
        """Carry out an instruction of the gateway to this part."""
        raise NotImplementedError

    def partly_shown(self, had: list[int]) -> None:
        """Note that of the messages that an instruction was to show, the application got only these
        keys."""

    # The channel.

    def welcomed(self, hello: Hello, welcome: Welcome, now: Micros) -> None:
        """Note that the gateway has answered a HELLO with its WELCOME."""

    def joined(self) -> None:
        """Note that one more channel is open."""

    def started_over(self, *, related: bool) -> None:
        """Note that a new epoch began; the gateway knows the old one if it is `related`."""

    def rerouted(self, channel: int) -> None:
        """Note that one of several channels has ended."""

    def lost(self) -> None:
        """Note that no channel is open any more."""

    def link_up(self, channel: int, label: str, round_trip: Micros | None) -> None:
        """Note that messages may leave over this channel; `round_trip` is None if it was not
        measured."""

    def link_paused(self, channel: int, paused: bool) -> None:
        """Note that a channel's unsent buffer is full, or has room again."""

    # What goes out.

    def frames(self, *, room: bool, piece: bool) -> list[Frame]:
        """Return the frames that leave over the main channel after messages: without `room` only
        very small ones; with `piece` the last may be a piece."""
        return []

    def accepted(self, items: list[Outgoing], now: Micros) -> None:
        """Note that the gateway has acknowledged these messages of this device."""

    def fails(self, item: Outgoing, refusal: Refusal) -> bool:
        """Whether the part deals with a message of this device that cannot leave, so that no
        refusal is reported."""
        return False

    def refused(self, key: int) -> None:
        """Note that the gateway will not act on a message of this device, or never gets it."""

    # Time, and what has to survive.

    def expire(self, now: Micros) -> None:
        """Drop what is past its deadline."""

    def next_expiry(self) -> Micros | None:
        """Return the time at which `expire` has something to do; None if there is none."""
        return None

    def before_change(self) -> None:
        """Prepare for the next change, which is about to be collected."""

    def collect(self, change: Change) -> None:
        """Put the part's durable data into `change`."""

    def committed(self, n: int) -> None:
        """Note that change `n`, and all before it, is durable."""

    def takes_back(self, message: Message) -> bool:
        """Whether the part takes a message of the inbox after a restart, whose turn had come."""
        return False

    def keeps_again(self, message: Message, rank: float) -> bool:
        """Whether the part takes a message after a restart that was kept outside the inbox."""
        return False

    def restored(self) -> None:
        """Note that everything has been restored after a restart."""

    # For the owner.

    def session_events(self) -> Iterable[SessionEvent]:
        """Return the events for the application since the last call."""
        return ()


def moments(parts: Iterable[DevicePart], name: str) -> list[Callable[..., Any]]:
    """Return the methods of this name of the parts that override it; the others cost nothing."""
    base = getattr(DevicePart, name)
    return [getattr(part, name) for part in parts if getattr(type(part), name) is not base]
