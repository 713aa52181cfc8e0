"""The settings of a gateway's capacity and retention, of its carriers and of ranked topics."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from lasthop.access.rest.settings import RestSettings
from lasthop.clock import DAY
from lasthop.core.limits import HistoryBounds, Limits as CoreLimits
from lasthop.decision.policies import POLICIES
from lasthop.decision.routes import Variant
from lasthop.decision.volume.policy_choice import DEFAULT_POLICY, PolicyChoice
from lasthop.runtime.units import Duration, LimitList, ListenAddress, Size

_limits = CoreLimits()
_rest = RestSettings()


class Retention(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How long data is kept after its deliveries have ended."""

    messages: Annotated[
        Duration, Meta(description="Messages all of whose deliveries have ended.")
    ] = Duration(7 * DAY)
    keys: Annotated[
        Duration, Meta(description="Idempotency keys: how long a publisher may repeat a request.")
    ] = Duration(2 * DAY)
    log: Annotated[Duration, Meta(description="Segments of the event log.")] = Duration(30 * DAY)


class Ota(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Pushes over the air, to devices that have routes."""

    source: Annotated[
        ListenAddress,
        Meta(description="Address that datagrams are sent from; port 0 lets the system choose."),
    ] = ListenAddress("0.0.0.0:0")
    sessions: Annotated[
        str,
        Meta(
            description="UDP address for WSP sessions, usually at port 9201; empty turns them off."
        ),
    ] = ""
    http: Annotated[
        str,
        Meta(
            description="TCP address at which clients of OTA-HTTP connect, usually at port 4035;"
            " empty: only the gateway opens connections."
        ),
    ] = ""
    contact: Annotated[
        str,
        Meta(
            description="IP address at which clients are told to open sessions and connections,"
            " where it is not the one of the settings above."
        ),
    ] = ""
    attempts: Annotated[
        int,
        Meta(description="Attempts at a push that is sent and never confirmed.", ge=1, le=100),
    ] = _limits.carried_attempts
    patience: Annotated[
        Duration,
        Meta(description="How long the gateway tries a device that cannot be reached."),
    ] = Duration(_limits.carried_patience)

    @property
    def variants(self) -> frozenset[str]:
        """The variants of OTA over IP that the gateway uses: WSP sessions only if they have an
        address."""
        sessions = frozenset({Variant.WSP_SESSION}) if self.sessions else frozenset[Variant]()
        return frozenset({Variant.WSP, Variant.HTTP}) | sessions


class LimitSettings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Limits on the work that one gateway accepts."""

    body: Annotated[Size, Meta(description="The largest body of a message.")] = Size(_limits.body)
    largest_body: Annotated[
        Size, Meta(description="The largest body that an app's behaviour may allow.")
    ] = Size(_limits.largest_body)
    stream_window: Annotated[
        Size, Meta(description="Bytes of one stream that the gateway holds for its receiver.")
    ] = Size(_limits.stream_window)
    streams: Annotated[int, Meta(description="Streams that are open at a time.", ge=1)] = (
        _limits.streams
    )
    request: Annotated[
        Size, Meta(description="The largest HTTP request, with all its messages.")
    ] = Size(_rest.max_body)
    batch: Annotated[int, Meta(description="Messages in one request.", ge=1)] = _rest.max_messages
    open_per_device: Annotated[
        int,
        Meta(description="Messages that wait for one device; more are refused.", ge=1),
    ] = _limits.open_per_device
    publishers_percent: Annotated[
        int,
        Meta(
            description="Percent of these, and of every queue, that only publishers may use, so"
            " that no device fills the mailbox of another.",
            ge=0,
            le=100,
        ),
    ] = _limits.publishers_percent
    resident: Annotated[
        Size,
        Meta(description="Bodies kept in memory for devices without a channel; all are stored."),
    ] = Size(_limits.resident)
    context: Annotated[Size, Meta(description="The largest report of a device about itself.")] = (
        Size(_limits.context)
    )
    subscriptions_per_device: Annotated[
        int, Meta(description="Topics that one device may subscribe to.", ge=1)
    ] = _limits.subscriptions_per_device
    memberships_per_device: Annotated[
        int, Meta(description="Groups and queues of one device.", ge=1)
    ] = _limits.memberships_per_device
    bound_members: Annotated[
        int, Meta(description="The most members of an atomic or claimable message.", ge=1)
    ] = _limits.bound_members
    queue_length: Annotated[
        int, Meta(description="Messages that wait in one queue; more are refused.", ge=1)
    ] = _limits.queue_length
    claim_patience: Annotated[
        Duration, Meta(description="How long a message without a deadline can be claimed.")
    ] = Duration(_limits.claim_patience)
    shared: Annotated[
        LimitList,
        Meta(
            description="Limits for all devices together, separated by semicolons, such as"
            ' "5000000 bytes per day over mno; 100 messages per week of news".'
        ),
    ] = LimitList("")
    zone: Annotated[
        str, Meta(description="Time zone of the shared limits' days, such as Europe/Oslo.")
    ] = "UTC"
    retained: Annotated[
        int,
        Meta(
            description="Messages of one ranked topic kept for one device; the lowest are dropped.",
            ge=1,
        ),
    ] = _limits.retained
    preserve: Annotated[
        Duration, Meta(description="How long a device's session outlives its last connection.")
    ] = Duration(_limits.preserve)
    heartbeat: Annotated[
        Duration, Meta(description="Silence after which a device checks its connection.")
    ] = Duration(_limits.heartbeat)

    def core(self, ota: Ota, topics: Topics | None = None) -> CoreLimits:
        """Return the limits in the form that the gateway uses."""
        topics = topics or Topics()
        return CoreLimits(
            history=HistoryBounds(
                age=int(topics.remember),
                messages=topics.remember_messages,
                bytes=int(topics.remember_bytes),
            ),
            remembered=topics.remembered,
            carried_attempts=ota.attempts,
            carried_patience=ota.patience,
            body=self.body,
            largest_body=max(self.body, self.largest_body),
            stream_window=self.stream_window,
            streams=self.streams,
            open_per_device=self.open_per_device,
            publishers_percent=self.publishers_percent,
            resident=self.resident,
            context=self.context,
            subscriptions_per_device=self.subscriptions_per_device,
            memberships_per_device=self.memberships_per_device,
            bound_members=self.bound_members,
            queue_length=self.queue_length,
            claim_patience=self.claim_patience,
            retained=self.retained,
            max_frame=self.body + 1024,
            preserve=self.preserve,
            heartbeat=self.heartbeat,
        )


class Topics(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What topics remember for those who come later, and what is sent ahead to devices that keep
    the best messages of a topic until they are read."""

    remember: Annotated[
        Duration,
        Meta(
            description="How long a topic remembers its messages, unless it or its app says"
            " otherwise; 0 switches that off."
        ),
    ] = Duration(_limits.history.age)
    remember_messages: Annotated[
        int,
        Meta(description="Messages that one topic remembers, the newest.", ge=0, le=100_000),
    ] = _limits.history.messages
    remember_bytes: Annotated[
        Size, Meta(description="Bytes of bodies that one topic remembers.")
    ] = Size(_limits.history.bytes)
    remembered: Annotated[
        int,
        Meta(description="Messages that all topics together remember.", ge=0),
    ] = _limits.remembered

    policy: Annotated[
        str,
        Meta(
            description="The forwarding policy of subscriptions that name none.",
            extra={"words": POLICIES},
        ),
    ] = DEFAULT_POLICY
    keep_default: Annotated[
        bool,
        Meta(
            description="Whether subscriptions keep the default policy of the version that they"
            " were made with, as long as `policy` is the default; false: `policy` holds for all."
        ),
    ] = True
    trial_hours: Annotated[
        float,
        Meta(
            description="Hours until a learned version on trial is promoted if its loss is not"
            " higher; 0: only by hand.",
            ge=0,
            le=10_000,
        ),
    ] = 20.0
    tolerated_loss: Annotated[
        float,
        Meta(
            description="How much more a version on trial may lose, as a share of messages, before"
            " it is taken back.",
            ge=0,
            le=1,
        ),
    ] = 0.01

    def choice(self) -> PolicyChoice | None:
        """Return the policy that holds for all subscriptions that name none; None: each keeps the
        default that it was made with."""
        if self.keep_default and self.policy == DEFAULT_POLICY:
            return None
        return PolicyChoice(self.policy)
