"""The life cycle of a delivery: one table of states and steps, and how PAP and Odin name the
states.

A delivery is one message for one device. Odin's four states and the states that PAP reports
(`core.report`) are both views of the states here, kept apart where they differ: what PAP calls
`delivered` for an unconfirmed push is `SENT` here, and Odin's Received is not its Delivered.

    PENDING ──▶ SENDING ──▶ RECEIVED ──▶ DELIVERED
       │  ▲        │  │ ▲       │
       │  └────────┘  │ └───────┘  the device lost its memory, or the link its messages: once more
       ▼              ▼
    EXPIRED, CANCELLED, ...   every other end

Of a queue's message one delivery at a time is under way; those of consumers that it was taken from
again are PARKED, and may come back to PENDING.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum

from lasthop.events import Kind
from lasthop.message import DeliveryMethod, Reliability


class State(IntEnum):
    """The state of a delivery. The numbers are stored: never reuse one."""

    PENDING = 0
    """The gateway has yet to send the delivery: it waits for its time, for contact, or for its
    turn."""
    SENDING = 1
    """The delivery is released: it has its sequence number and can no longer be taken back."""
    RECEIVED = 2
    """The device has stored the message, and has not given it to the application yet."""
    PARKED = 3
    """The delivery was taken from this consumer of a queue, so that another consumer can have
    it."""
    DELIVERED = 10
    """The application has processed the message (or, at the level at-least-once delivery, the
    device has received it)."""
    SENT = 11
    """The best-effort message was handed to the link; no confirmation is expected."""
    EXPIRED = 12
    CANCELLED = 13
    REPLACED = 14
    ABORTED = 15
    TIMED_OUT = 16
    UNDELIVERABLE = 17
    REASSIGNED = 18
    SUPPRESSED = 19

    @property
    def final(self) -> bool:
        """Whether the delivery has ended, so that its state never changes again."""
        return self >= State.DELIVERED


PENDING, SENDING, DELIVERED = State.PENDING, State.SENDING, State.DELIVERED
"""Copies of enum members, for code that runs for every message: looking up a member of an enum
costs as much as a call."""

STATE_NAMES: dict[State, str] = {state: state.name for state in State}
"""The name of each state in events and in answers to people."""


class Step(StrEnum):
    """What can happen to a delivery: the inputs of the table `TRANSITIONS`."""

    RELEASE = "release"
    RECEIVE = "receive"
    DELIVER = "deliver"
    HAND_OVER = "hand over"
    REQUEUE = "requeue"
    PARK = "park"
    EXPIRE = "expire"
    CANCEL = "cancel"
    REPLACE = "replace"
    ABORT = "abort"
    REFUSE = "refuse"
    TIME_OUT = "time out"
    GIVE_UP = "give up"
    REASSIGN = "reassign"
    SUPPRESS = "suppress"


_P, _S, _R, _K = State.PENDING, State.SENDING, State.RECEIVED, State.PARKED

TRANSITIONS: dict[tuple[State, Step], tuple[State, Kind]] = {
    # Not sent yet. The delivery to a single device can be taken back here and nowhere else.
    (_P, Step.RELEASE): (State.SENDING, Kind.RELEASED),
    (_P, Step.EXPIRE): (State.EXPIRED, Kind.EXPIRED),
    (_P, Step.CANCEL): (State.CANCELLED, Kind.CANCELLED),
    (_P, Step.REPLACE): (State.REPLACED, Kind.REPLACED),
    (_P, Step.ABORT): (State.ABORTED, Kind.ABORTED),
    # A delivery that was requeued may have been shown already, under a number of an earlier epoch.
    (_P, Step.TIME_OUT): (State.TIMED_OUT, Kind.TIMED_OUT),
    # A queue took it back from a device that then reports that the message had been read before.
    (_P, Step.DELIVER): (State.DELIVERED, Kind.DELIVERED),
    (_P, Step.GIVE_UP): (State.UNDELIVERABLE, Kind.UNDELIVERABLE),
    (_P, Step.REASSIGN): (State.REASSIGNED, Kind.REASSIGNED),
    (_P, Step.SUPPRESS): (State.SUPPRESSED, Kind.SUPPRESSED),
    # Released. Only the device's report, or its silence, leads on from here.
    (_S, Step.HAND_OVER): (State.SENT, Kind.SENT),
    (_S, Step.RECEIVE): (State.RECEIVED, Kind.RECEIVED),
    (_S, Step.DELIVER): (State.DELIVERED, Kind.DELIVERED),
    (_S, Step.REQUEUE): (State.PENDING, Kind.REQUEUED),
    (_S, Step.EXPIRE): (State.EXPIRED, Kind.EXPIRED),
    (_S, Step.REFUSE): (State.ABORTED, Kind.ABORTED),
    (_S, Step.TIME_OUT): (State.TIMED_OUT, Kind.TIMED_OUT),
    (_S, Step.GIVE_UP): (State.UNDELIVERABLE, Kind.UNDELIVERABLE),
    # On the device, which may still drop the message as too late, or lose it with its memory.
    (_R, Step.DELIVER): (State.DELIVERED, Kind.DELIVERED),
    (_R, Step.REQUEUE): (State.PENDING, Kind.REQUEUED),
    (_R, Step.EXPIRE): (State.EXPIRED, Kind.EXPIRED),
    (_R, Step.TIME_OUT): (State.TIMED_OUT, Kind.TIMED_OUT),
    (_R, Step.GIVE_UP): (State.UNDELIVERABLE, Kind.UNDELIVERABLE),
    # The device holds it unseen until its group decides: then it can be taken back from all
    # members.
    (_S, Step.CANCEL): (State.CANCELLED, Kind.CANCELLED),
    (_R, Step.CANCEL): (State.CANCELLED, Kind.CANCELLED),
    (_S, Step.REPLACE): (State.REPLACED, Kind.REPLACED),
    (_R, Step.REPLACE): (State.REPLACED, Kind.REPLACED),
    (_S, Step.ABORT): (State.ABORTED, Kind.ABORTED),
    (_R, Step.ABORT): (State.ABORTED, Kind.ABORTED),
    # Another member has claimed the message, and the device dropped it before the application saw
    # it.
    (_S, Step.SUPPRESS): (State.SUPPRESSED, Kind.SUPPRESSED),
    (_R, Step.SUPPRESS): (State.SUPPRESSED, Kind.SUPPRESSED),
    # Of a queue: this consumer is gone or too slow. The parked delivery ends when the queue entry
    # ends.
    (_P, Step.PARK): (State.PARKED, Kind.PARKED),
    (_S, Step.PARK): (State.PARKED, Kind.PARKED),
    (_R, Step.PARK): (State.PARKED, Kind.PARKED),
    (_K, Step.REQUEUE): (State.PENDING, Kind.REQUEUED),
    (_K, Step.REASSIGN): (State.REASSIGNED, Kind.REASSIGNED),
    (_K, Step.EXPIRE): (State.EXPIRED, Kind.EXPIRED),
    (_K, Step.CANCEL): (State.CANCELLED, Kind.CANCELLED),
    (_K, Step.REPLACE): (State.REPLACED, Kind.REPLACED),
    (_K, Step.TIME_OUT): (State.TIMED_OUT, Kind.TIMED_OUT),
    (_K, Step.GIVE_UP): (State.UNDELIVERABLE, Kind.UNDELIVERABLE),
}
"""Every possible step: the state that it leads to, and the event that records it. A step that is
not in this table cannot happen."""


ODIN_VIEW: dict[State, str] = {
    State.PENDING: "PendingSend",
    State.SENDING: "Sending",
    State.RECEIVED: "Received",
    State.DELIVERED: "Delivered",
}
"""Odin's names (seed 000, figure 7) for those states that Odin has."""


class Confirmation(StrEnum):
    """The confirmation that makes a delivery a success."""

    LINK = "link"
    """The message was handed to the link."""
    RECEIPT = "receipt"
    """The device confirmed that it received the message."""
    PROCESSING = "processing"
    """The application confirmed that it processed the message."""


CONFIRMED_BY: dict[Reliability, Confirmation] = {
    Reliability.BEST_EFFORT: Confirmation.LINK,
    Reliability.AT_LEAST_ONCE_DELIVERY: Confirmation.RECEIPT,
    Reliability.AT_LEAST_ONCE_PROCESSING: Confirmation.PROCESSING,
    Reliability.EXACTLY_ONCE: Confirmation.PROCESSING,
}
"""The confirmation that each level of reliability waits for. The two processing levels differ on
the device: only exactly-once remembers across a crash what was processed."""

RELIABILITY_OF_METHOD: dict[DeliveryMethod, Reliability | None] = {
    DeliveryMethod.NOT_SPECIFIED: None,
    DeliveryMethod.UNCONFIRMED: Reliability.BEST_EFFORT,
    DeliveryMethod.PREFER_CONFIRMED: Reliability.EXACTLY_ONCE,
    DeliveryMethod.CONFIRMED: Reliability.EXACTLY_ONCE,
    DeliveryMethod.CONFIRMED_WITH_RESPONSE: Reliability.EXACTLY_ONCE,
    DeliveryMethod.ONESHOT: Reliability.BEST_EFFORT,
}
"""The reliability that each PAP delivery method asks for; None leaves it to the message. A method
that contradicts an explicit reliability is refused on submission."""
