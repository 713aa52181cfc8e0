"""The terms of a subscription as people and devices write them, and how a subscription and a policy
are made of them."""

from __future__ import annotations

from math import inf
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lasthop.clock import SECOND
from lasthop.decision.constraints import QuietHours
from lasthop.decision.policies import POLICIES
from lasthop.decision.volume.policy_choice import PolicyChoice
from lasthop.decision.volume.subscription import Mode, Subscription
from lasthop.errors import InvalidRequest

_Count = Annotated[int, Meta(ge=1, le=1_000_000)]
_Rank = Annotated[float, Meta(ge=-1e300, le=1e300)]
_Clock = Annotated[str, Meta(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
_Word = Annotated[str, Meta(min_length=1, max_length=128)]
Words = Annotated[
    dict[_Word, Annotated[list[_Word], Meta(min_length=1, max_length=32)]], Meta(max_length=16)
]
"""The accepted values, for every name of a context that a condition mentions."""


class Quiet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Quiet hours of the day, by the user's clock."""

    start: _Clock
    end: _Clock


class TopicTerms(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """What a subscriber asks of a topic: how many messages, how important, and when they are
    shown."""

    mode: Annotated[
        Mode,
        Meta(description="Shown as soon as possible (on-line) or when the user looks (on-demand)"),
    ] = Mode.ON_DEMAND
    max: Annotated[
        _Count | None, Meta(description="Most messages in one read or catch-up, the best first")
    ] = None
    threshold: Annotated[
        _Rank | None, Meta(description="Messages below this rank are not shown")
    ] = None
    interrupt: Annotated[
        _Rank | None, Meta(description="Messages of at least this rank are shown at once")
    ] = None
    quiet: Annotated[
        Quiet | None, Meta(description="Hours in which an on-line topic shows nothing unasked")
    ] = None
    quiet_when: Annotated[
        Words | None,
        Meta(description="The device's context in which an on-line topic shows nothing unasked"),
    ] = None
    times: Annotated[
        Annotated[list[_Clock], Meta(max_length=24)],
        Meta(description="Show an on-line topic at these times of the day only"),
    ] = []
    max_per_day: Annotated[
        _Count | None, Meta(description="Most messages a day at these times")
    ] = None
    zone: Annotated[
        str,
        Meta(max_length=64, description="Time zone of the user (IANA name); default: the device's"),
    ] = ""
    retention: Annotated[
        _Count | None,
        Meta(description="Most messages kept at the gateway; beyond it the worst are dropped"),
    ] = None
    storage: Annotated[
        _Count | None, Meta(description="Most unread messages kept on the device")
    ] = None
    policy: Annotated[
        _Word | None, Meta(description="The forwarding policy: what is sent before the user looks")
    ] = None
    prefetch_limit: Annotated[
        _Count | None, Meta(description="Most unread messages sent ahead, for policies that use it")
    ] = None
    expiration_threshold: Annotated[
        Annotated[float, Meta(ge=0, le=1e9)] | None,
        Meta(
            description="Seconds; what expires sooner is not sent ahead, for policies that use it"
        ),
    ] = None

    def subscription(self, device_zone: str, *, retention: int) -> Subscription:
        """Return the subscription that a feed takes. Raises InvalidRequest."""
        name = self.zone or device_zone
        if self.policy is not None and self.policy not in POLICIES:
            known = ", ".join(sorted(POLICIES))
            raise InvalidRequest(f"policy: no such policy: choose from {known}", field="policy")
        try:
            return Subscription(
                mode=self.mode,
                max=self.max,
                threshold=-inf if self.threshold is None else self.threshold,
                interrupt=self.interrupt,
                quiet=None
                if self.quiet is None
                else QuietHours(name, _minute(self.quiet.start), _minute(self.quiet.end)),
                times=tuple(_minute(text) for text in self.times),
                max_per_day=self.max_per_day,
                zone=name,
                retention=min(retention, self.retention or retention),
                storage=self.storage,
            )
        except ValueError as error:
            raise InvalidRequest(str(error)) from None

    def choice(self, chosen: PolicyChoice) -> PolicyChoice:
        """Return the policy: what these terms say takes precedence over what was chosen for all
        devices."""
        changes: dict[str, Any] = {}
        if self.policy is not None and self.policy != chosen.policy:
            changes = {"policy": self.policy, "version": ""}
        if self.prefetch_limit is not None:
            changes["prefetch_limit"] = self.prefetch_limit
        if self.expiration_threshold is not None:
            changes["expiration_threshold"] = round(self.expiration_threshold * SECOND)
        return msgspec.structs.replace(chosen, **changes) if changes else chosen


def _minute(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])


_decode = msgspec.json.Decoder(TopicTerms).decode


def decode_terms(body: bytes) -> TopicTerms:
    """Decode terms as a device sends them with its subscription. Raises InvalidRequest."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"terms must be a JSON object: {error}") from None
