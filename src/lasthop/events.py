"""The one schema of the event log.

Every step of a delivery and every input of the decision engine is an `Event`. Events commit with
the change they describe, are exported as JSON lines, and are read by `explain`, the pipeline and
replay. The schema only grows: new fields come with a default, a field never changes its meaning,
`SCHEMA_VERSION` counts the additions.

Bodies, tokens and titles are never in an event.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from lasthop.clock import Micros

SCHEMA_VERSION = 5


class Kind(StrEnum):
    """The kind of an event: what happened, in the past tense."""

    # A delivery, from beginning to end.
    ACCEPTED = "accepted"
    HELD = "held"
    CONSULTED = "consulted"
    RELEASED = "released"
    TRANSMITTED = "transmitted"
    COUNTED = "counted"
    RECEIVED = "received"
    REQUEUED = "requeued"
    PARKED = "parked"
    # Its possible ends; each delivery has exactly one of them.
    SENT = "sent"
    DELIVERED = "delivered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    REPLACED = "replaced"
    ABORTED = "aborted"
    TIMED_OUT = "timed_out"
    UNDELIVERABLE = "undeliverable"
    REASSIGNED = "reassigned"
    SUPPRESSED = "suppressed"
    # After the end.
    READ = "read"
    RETRACTED = "retracted"
    REPLIED = "replied"
    RECEIPTED = "receipted"
    # A device's message: what the app's surrogate decided about it before anything was delivered.
    VETTED = "vetted"
    # A message for many: its fan-out, and the decisions that concern all of its deliveries.
    PUBLISHED = "published"
    SETTLED = "settled"
    RANK_CHANGED = "rank_changed"
    # The result notifications that an initiator gets for a push.
    NOTIFIED = "notified"
    NOTIFICATION_FAILED = "notification_failed"
    NOTIFICATION_GIVEN_UP = "notification_given_up"
    # A topic.
    ADVERTISED = "advertised"
    WITHDRAWN = "withdrawn"
    # A device.
    REGISTERED = "registered"
    REMOVED = "removed"
    SUBSCRIBED = "subscribed"
    UNSUBSCRIBED = "unsubscribed"
    JOINED = "joined"
    LEFT = "left"
    CONTEXT_CHANGED = "context_changed"
    PREFERENCES_CHANGED = "preferences_changed"
    CONTACT_STARTED = "contact_started"
    CONTACT_LOST = "contact_lost"
    REPORTED = "reported"
    EPOCH_STARTED = "epoch_started"
    HEARTBEAT = "heartbeat"
    MEASURED = "measured"
    CREDIT_CHANGED = "credit_changed"
    # A stream: sparse, however many pieces it has.
    STREAM_OPENED = "stream_opened"
    STREAM_PROGRESSED = "stream_progressed"
    STREAM_ENDED = "stream_ended"
    # The gateway.
    GATEWAY_STARTED = "gateway_started"
    TIMER_FIRED = "timer_fired"
    POLICY_CHANGED = "policy_changed"


class Event(msgspec.Struct, omit_defaults=True, gc=False):
    """One line of the event log. `docs/event-log.md` lists the optional fields of each kind.

    `(gw, boot, n)` is the event's id: `n` is dense and ascending over the life of a store. `dn`
    counts the events of a device without gaps, `prev` links the events of one delivery backwards,
    so that the history of a delivery is found without a scan.
    """

    v: int
    gw: str
    boot: int
    n: int
    t: Micros
    kind: str
    app: str = ""
    dev: str = ""
    dn: int = -1
    msg: int = 0
    prev: int = -1
    state: str = ""
    reason: str = ""
    source: str = ""
    target: str = ""
    topic: str = ""
    queue: str = ""
    size: int = 0
    rank: float = 0.0
    priority: int = -1
    after: Micros = 0
    before: Micros = 0
    reliability: int = -1
    method: str = ""
    epoch: int = -1
    seq: int = -1
    attempt: int = 0
    link: str = ""
    network: str = ""
    channel: int = 0
    bytes: int = 0
    cost: float = 0.0
    policy: str = ""
    count: int = -1
    queue_size: int = -1
    rtt: Micros = -1
    other: int = 0
    resumed: bool = False
    incarnation: str = ""
    at: Micros = 0
    keys: tuple[int, ...] = ()
    interval: Micros = 0
    contention: float = 0.0
    terms: str = ""
    zone: str = ""
    trace: str = ""
    lane: int = 0
