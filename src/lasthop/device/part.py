"""The interface by which a feature takes part in a device's session; the core of the session does
not know the features.

The core calls a part only through the methods of `DevicePart`, which do nothing; a part overrides
the methods that it needs. `session` lists all parts; they do not know one another.
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
    """The name of the operation in the gateway's instructions to this part; None if the part gets
    no instructions."""
    takes_late = False
    """Whether the part also claims messages whose deadline has passed."""

    # What comes in.

    def frames_taken(self) -> Mapping[type[Frame], Callable[[Any, Micros], None]]:
        """Return the functions that handle frames other than messages and acks, by frame type."""
        return {}

    def whole(self, frame: MessageFrame, headers: Headers) -> MessageFrame | None:
        """Return an arriving message with its complete headers and body; return None to drop the
        message as if it had been lost."""
        return frame

    def claims(self, message: Message, headers: Headers, now: Micros) -> bool:
        """Whether the part takes over a new message whose turn has come."""
        return False

    def came_again(self, message: Message) -> None:
        """Note that a message came again although the application is done with it; its new number
        will be acknowledged."""

    def shows_at_last(self, message: Message) -> bool:
        """Whether a message that the part keeps unseen has come again to be shown: the part keeps
        it no longer."""
        return False

    def cut_off(self, message: Message, *, related: bool) -> bool:
        """Whether the part deals with a message that was waiting for an earlier one when a new
        epoch began."""
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
        """Note that the application got only the messages of these keys, of all messages that an
        instruction was to show."""

    # The channel.

    def welcomed(self, hello: Hello, welcome: Welcome, now: Micros) -> None:
        """Note that the gateway has answered a HELLO with its WELCOME."""

    def joined(self) -> None:
        """Note that one more channel is open."""

    def started_over(self, *, related: bool) -> None:
        """Note that a new epoch began; if `related`, the gateway knows the old epoch."""

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
        """Return the part's frames that leave over the main channel after the messages. Without
        `room` they must be very small; with `piece` the last frame may be a piece of a transfer."""
        return []

    def accepted(self, items: list[Outgoing], now: Micros) -> None:
        """Note that the gateway has acknowledged these messages of this device."""

    def fails(self, item: Outgoing, refusal: Refusal) -> bool:
        """Whether the part deals with a message of this device that cannot be sent; if so, no
        refusal is reported."""
        return False

    def refused(self, key: int) -> None:
        """Note that the gateway will not act on a message of this device, or that the message will
        never be sent."""

    # Time, and what has to survive.

    def expire(self, now: Micros) -> None:
        """Drop the messages or requests of this part whose deadline has passed."""

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
        """Whether the part takes over a message that was in the inbox before a restart and whose
        turn had come."""
        return False

    def keeps_again(self, message: Message, rank: float) -> bool:
        """Whether the part takes over a message that was kept outside the inbox before a
        restart."""
        return False

    def restored(self) -> None:
        """Note that everything has been restored after a restart."""

    # For the owner.

    def session_events(self) -> Iterable[SessionEvent]:
        """Return the events for the application since the last call."""
        return ()


def moments(parts: Iterable[DevicePart], name: str) -> list[Callable[..., Any]]:
    """Return the method of this name from each part that overrides it, so that the other parts need
    not be called."""
    base = getattr(DevicePart, name)
    return [getattr(part, name) for part in parts if getattr(type(part), name) is not base]
