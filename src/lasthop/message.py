"""The message, its target and its id: the nouns that every part of lasthop shares.

A `Message` is what a publisher hands over, stored once. A delivery (one message for one device) is
the unit of the life cycle; its states live in `core.lifecycle`. Nothing here does I/O or decides
anything.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, StrEnum

import msgspec

from lasthop.clock import MILLISECOND, Micros

EPOCH_MS = 1_735_689_600_000
"""The zero of message keys, 2025-01-01T00:00:00Z in milliseconds since 1970: 41 bits last until
2094."""

COUNTER_BITS = 12
LAST_COUNTER = (1 << COUNTER_BITS) - 1
NODE_BITS = 10
KEY_TIME_SHIFT = COUNTER_BITS + NODE_BITS
MAX_KEY = (1 << 63) - 1
MAX_NODE = (1 << NODE_BITS) - 1


class Reliability(IntEnum):
    """The guarantee that a message is delivered with; the numbers are those on the wire."""

    BEST_EFFORT = 0
    AT_LEAST_ONCE_DELIVERY = 1
    AT_LEAST_ONCE_PROCESSING = 2
    EXACTLY_ONCE = 3


class DeliveryMethod(StrEnum):
    """The confirmation that a publisher wants of a delivery, in the words of PAP."""

    NOT_SPECIFIED = "notspecified"
    UNCONFIRMED = "unconfirmed"
    PREFER_CONFIRMED = "preferconfirmed"
    CONFIRMED = "confirmed"
    CONFIRMED_WITH_RESPONSE = "confirmedwithresponse"
    ONESHOT = "oneshot"


class Handling(IntEnum):
    """How the device treats a message when it arrives."""

    FOREGROUND = 0
    NOTIFY = 1
    BACKGROUND = 2
    SILENT = 3


class TargetKind(StrEnum):
    """The kind of receiver that a message is for."""

    DEVICE = "device"
    USER = "user"
    TOPIC = "topic"
    APP = "app"
    SERVICE = "service"
    """One of the devices that offer a service, chosen when the message is accepted."""
    GROUP = "group"
    """The devices that are members of a group when the message is accepted."""
    QUEUE = "queue"
    """One of the devices that take from a queue: a device that is in contact and has room."""
    PUSH = "push"
    """The devices that the several addresses of one push stood for when it was accepted."""
    PUBLISHER = "publisher"
    """The publisher of the message that is answered; the answer is fetched, not delivered."""


class Binding(IntEnum):
    """What the members of a group share in a message; the numbers are those on the wire."""

    NONE = 0
    """Each member of the group has its own copy of the message."""
    ATOMIC = 1
    """All members of the group are shown the message, or none is."""
    CLAIM = 2
    """All members of the group are shown the message; only the first to claim it may act on it."""


class Target(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The receiver of a message, by kind and name: `device:alice-phone`, `topic:news`,
    `group:staff`, `queue:jobs`; `app:` is every device of the app."""

    kind: TargetKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def topic(self) -> str | None:
        """The topic that the message is published to; None for every other kind of target."""
        return self.name if self.kind is TargetKind.TOPIC else None


class Quality(msgspec.Struct, frozen=True, array_like=True):
    """The network and bearer that a publisher asks for, as WDP spells them: if required, the
    message goes over no other; otherwise they are preferred."""

    network: str = ""
    network_required: bool = False
    bearer: str = ""
    bearer_required: bool = False


GATEWAY = "gateway:"
"""The source of messages that the gateway itself sends: decisions, refusals, notices of feeds."""

DEFAULT_PRIORITY = 4
DEFAULT_CONTENT_TYPE = "text/plain; charset=utf-8"


class Message(msgspec.Struct, array_like=True, gc=False):
    """A message that was accepted from a publisher or a device. Immutable after acceptance.

    `array_like` keeps stored pages small: new fields go to the end, with a default, and are never
    removed.
    """

    key: int
    salt: int
    app: str
    source: str
    target: Target
    accepted_at: Micros
    body: bytes = b""
    content_type: str = DEFAULT_CONTENT_TYPE
    title: str | None = None
    priority: int = DEFAULT_PRIORITY
    rank: float = 0.0
    deliver_after: Micros | None = None
    deliver_before: Micros | None = None
    delay_tolerance: Micros | None = None
    reliability: Reliability = Reliability.EXACTLY_ONCE
    method: DeliveryMethod = DeliveryMethod.NOT_SPECIFIED
    handling: Handling = Handling.FOREGROUND
    queue: str | None = None
    replace_key: str | None = None
    in_reply_to: int | None = None
    correlation: int | None = None
    """The sending device's own key for a request; its answer carries it as `in_reply_to`."""
    reply_before: Micros | None = None
    headers: tuple[tuple[str, str], ...] = ()
    quality: Quality | None = None
    answer: bool = False
    """Whether the message answers a device's request, which the device may have given up
    meanwhile."""
    binding: Binding = Binding.NONE
    stream: bool = False
    """Whether the message opens a stream, whose pieces have the message's key."""
    pull: bool = False
    """Whether the device is only told of the message, and gets the body when it asks for it."""
    immediate: bool = False
    """Whether the message is dropped for a device that cannot be reached at once."""

    @property
    def id(self) -> str:
        """The public id of the message: 32 hexadecimal digits, of which the first 16 are the
        key."""
        return format_id(self.key, self.salt)


def format_id(key: int, salt: int) -> str:
    """Write a message's 128-bit id in hexadecimal; ids sort by the time of acceptance."""
    return f"{key << 64 | salt:032x}"


def parse_id(text: str) -> tuple[int, int | None]:
    """Return the key and salt of a message id; the salt is None for a short form: 16 hexadecimal
    digits, or 12 letters and digits.

    >>> parse_id("00000000000000ff")
    (255, None)
    """
    if len(text) == SHORT:
        return _key_of_short(text), None
    if len(text) not in (16, 32):
        raise ValueError(
            "a message id must have 32 hexadecimal digits, or 16 or 12 characters in a short form"
        )
    if not all(c in "0123456789abcdef" for c in text):
        raise ValueError("a message id may only have the digits 0-9 and a-f")
    key = int(text[:16], 16)
    if key > MAX_KEY:
        raise ValueError("a message id must start with a digit below 8")
    return key, int(text[16:], 16) if len(text) == 32 else None


SHORT = 12
"""Characters of the shortest form of a message id, as clients of ntfy know ids."""

_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_VALUES = {digit: value for value, digit in enumerate(_DIGITS)}


def short_form(key: int) -> str:
    """Write a message's key in 12 letters and digits, which sort by the time of acceptance.

    >>> short_form(255), parse_id(short_form(255))
    ('000000000047', (255, None))
    """
    digits = []
    for _ in range(SHORT):
        key, digit = divmod(key, 62)
        digits.append(_DIGITS[digit])
    return "".join(reversed(digits))


def _key_of_short(text: str) -> int:
    key = 0
    for digit in text:
        value = _VALUES.get(digit)
        if value is None:
            raise ValueError("a short message id may only have letters and digits")
        key = key * 62 + value
    if key > MAX_KEY:
        raise ValueError("no message has this short id")
    return key


def key_of_id(text: str) -> int | None:
    """Return the key in a text that has the form of a message id; None for any other text."""
    try:
        return parse_id(text)[0]
    except ValueError:
        return None


def key_time(key: int) -> Micros:
    """Return the time at which the message with this key was accepted, to the millisecond."""
    return ((key >> KEY_TIME_SHIFT) + EPOCH_MS) * MILLISECOND


def first_key_at(time: Micros, node: int = 0) -> int:
    """Return the least key that this node can give out at this time."""
    return (max(0, time // MILLISECOND - EPOCH_MS) << KEY_TIME_SHIFT) | (node << COUNTER_BITS)


def successor(key: int) -> int:
    """Return the key that follows this key at the same node within one millisecond."""
    if key & LAST_COUNTER != LAST_COUNTER:
        return key + 1
    return key - LAST_COUNTER + (1 << KEY_TIME_SHIFT)


class KeyMaker:
    """Gives out message keys that only grow, even when the clock stands still or jumps back.

    More than 4096 keys in a millisecond borrow from the next one. `random64` is injected so that a
    rehearsal is repeatable.
    """

    __slots__ = ("_counter", "_ms", "_node", "salt")

    def __init__(self, *, node: int, after: int, random64: Callable[[], int]) -> None:
        if not 0 <= node <= MAX_NODE:
            raise ValueError(f"node must be 0 to {MAX_NODE}")
        self._node = node << COUNTER_BITS
        self.salt = random64
        """Returns the random half of a message id, so that ids cannot be guessed."""
        # `after` is the last key given out in an earlier run: start strictly beyond it.
        self._ms = after >> KEY_TIME_SHIFT
        self._counter = LAST_COUNTER

    @property
    def last(self) -> int:
        """The newest key that was given out; before the first one, the largest key that an earlier
        run can have given out."""
        return self._ms << KEY_TIME_SHIFT | self._node | self._counter

    def key(self, now: Micros) -> int:
        """Return the next key at the time `now`; it is greater than every earlier key."""
        ms = now // MILLISECOND - EPOCH_MS
        counter = self._counter + 1
        if ms > self._ms:
            self._ms = ms
            counter = 0
        elif counter > LAST_COUNTER:
            self._ms += 1
            counter = 0
        self._counter = counter
        return self._ms << KEY_TIME_SHIFT | self._node | counter
