"""What one gateway takes on and how long it keeps it, over the air and for ranked topics too."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from lasthop.access.rest.settings import RestSettings
from lasthop.clock import DAY
from lasthop.core.limits import Limits as CoreLimits
from lasthop.decision.policies import POLICIES
from lasthop.decision.routes import Variant
from lasthop.decision.volume.policy_choice import DEFAULT_POLICY, PolicyChoice
from lasthop.runtime.units import Duration, LimitList, ListenAddress, Size

_limits = CoreLimits()
_rest = RestSettings()


class Retention(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How long things are kept once they are done with."""

    messages: Annotated[
        Duration, Meta(description="Messages that have reached an end on every device.")
    ] = Duration(7 * DAY)
    keys: Annotated[
        Duration, Meta(description="Idempotency keys: how late a publisher may try again.")
    ] = Duration(2 * DAY)
    log: Annotated[Duration, Meta(description="Segments of the event log.")] = Duration(30 * DAY)


class Ota(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Pushes over the air, to devices that have routes."""

    source: Annotated[
        ListenAddress,
        Meta(description="Where datagrams leave from; port 0 lets the system choose."),
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
            " empty: they are only connected to."
        ),
    ] = ""
    contact: Annotated[
        str,
        Meta(
            description="IP address that clients are told to open sessions and connections at,"
            " where it is not the one of the settings above."
        ),
    ] = ""
    attempts: Annotated[
        int,
        Meta(description="Of a push that leaves and is never confirmed.", ge=1, le=100),
    ] = _limits.carried_attempts
    patience: Annotated[
        Duration,
        Meta(description="How long a device is looked for that cannot be reached at all."),
    ] = Duration(_limits.carried_patience)

    @property
    def variants(self) -> frozenset[str]:
        """What is spoken over the air: sessions only where there is a place for them."""
        return frozenset(Variant) - (frozenset() if self.sessions else {Variant.WSP_SESSION})


class Limits(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What one gateway takes on."""

    body: Annotated[Size, Meta(description="The body of one message.")] = Size(_limits.body)
    largest_body: Annotated[
        Size, Meta(description="What an app's behaviour may allow instead.")
    ] = Size(_limits.largest_body)
    stream_window: Annotated[
        Size, Meta(description="Of one stream, what is held here while its receiver is behind.")
    ] = Size(_limits.stream_window)
    streams: Annotated[int, Meta(description="Streams that are open at a time.", ge=1)] = (
        _limits.streams
    )
    request: Annotated[Size, Meta(description="One HTTP request, with all its messages.")] = Size(
        _rest.max_body
    )
    batch: Annotated[int, Meta(description="Messages in one request.", ge=1)] = _rest.max_messages
    open_per_device: Annotated[
        int,
        Meta(description="Messages that wait for one device; more are refused.", ge=1),
    ] = _limits.open_per_device
    resident: Annotated[
        Size,
        Meta(description="Bodies in memory for devices that are away; the store has them all."),
    ] = Size(_limits.resident)
    context: Annotated[Size, Meta(description="A device's report about itself.")] = Size(
        _limits.context
    )
    subscriptions_per_device: Annotated[int, Meta(description="Topics of one device.", ge=1)] = (
        _limits.subscriptions_per_device
    )
    memberships_per_device: Annotated[
        int, Meta(description="Groups and queues of one device.", ge=1)
    ] = _limits.memberships_per_device
    bound_members: Annotated[
        int, Meta(description="Members that an atomic or claimable message is for.", ge=1)
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
            description="What all devices together may be sent, separated by semicolons, such as"
            ' "5000000 bytes per day over mno; 100 messages per week of news".'
        ),
    ] = LimitList("")
    zone: Annotated[
        str, Meta(description="Where the days of the shared limits begin, such as Europe/Oslo.")
    ] = "UTC"
    retained: Annotated[
        int,
        Meta(
            description="Messages of one ranked topic that wait for one device; then the worst go.",
            ge=1,
        ),
    ] = _limits.retained
    preserve: Annotated[
        Duration, Meta(description="How long a device's session outlives its last connection.")
    ] = Duration(_limits.preserve)
    heartbeat: Annotated[
        Duration, Meta(description="Silence after which a device asks whether we are there.")
    ] = Duration(_limits.heartbeat)

    def core(self, ota: Ota) -> CoreLimits:
        """As the gateway takes them."""
        return CoreLimits(
            carried_attempts=ota.attempts,
            carried_patience=ota.patience,
            body=self.body,
            largest_body=max(self.body, self.largest_body),
            stream_window=self.stream_window,
            streams=self.streams,
            open_per_device=self.open_per_device,
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
    """What is sent ahead to devices that keep the best of a topic until it is read."""

    policy: Annotated[
        str,
        Meta(
            description="The forwarding policy of subscriptions that name none.",
            extra={"words": POLICIES},
        ),
    ] = DEFAULT_POLICY

    def choice(self) -> PolicyChoice:
        """As the gateway takes it."""
        return PolicyChoice(self.policy)
