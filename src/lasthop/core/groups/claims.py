"""Claims: all members of a group are shown a message, and the one that claims it first may act on
it.

The claim is granted once, and the decision is durable before any device is told. The other members
are told who has claimed the message; a member that has not been shown it by then never is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from lasthop.clock import Micros
from lasthop.core.delivery import Delivery, Item
from lasthop.core.groups.decider import (
    WITHDRAWN,
    GroupDecider,
    GroupOperations,
    Standing,
    is_under_way,
)
from lasthop.core.lifecycle import PENDING, Step
from lasthop.core.registry import Device
from lasthop.errors import Forbidden
from lasthop.events import Kind
from lasthop.message import Message, Target, TargetKind
from lasthop.store.groups import GroupChanges, GroupMessageRow
from lasthop.wire.hop.decisions import GroupDecision, GroupVerdict


class ClaimedMessage(msgspec.Struct, array_like=True):
    """What has to be known of a claimable message after its deliveries have ended."""

    app: str
    group: str
    source: str
    correlation: int | None
    priority: int
    before: Micros


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ClaimedMessage).decode


class ClaimOperations(GroupOperations, Protocol):
    """The interface of the feature that has all claims."""

    def over(self, record: ClaimRecord) -> None:
        """Move the record of a message that can no longer be claimed to the recent ones."""
        ...


class ClaimRecord:
    """The record of one claimable message, as long as a device may ask for it. It outlives the
    deliveries: a message that was shown today may be claimed tomorrow."""

    __slots__ = ("_groups", "about", "key", "members", "standing", "winner")

    def __init__(
        self, groups: ClaimOperations, key: int, about: ClaimedMessage, members: tuple[int, ...]
    ) -> None:
        self._groups = groups
        self.key = key
        self.about = about
        self.members = frozenset(members)
        self.standing = Standing.CLAIMABLE
        self.winner = 0

    @classmethod
    def of(cls, groups: ClaimOperations, message: Message, members: tuple[int, ...]) -> ClaimRecord:
        """Return the record of a message that was just accepted."""
        before = message.deliver_before
        if before is None:
            before = message.accepted_at + groups.deliveries.limits.claim_patience
        about = ClaimedMessage(
            message.app,
            message.target.name,
            message.source,
            message.correlation,
            message.priority,
            before,
        )
        return cls(groups, message.key, about, members)

    @classmethod
    def resume(cls, groups: ClaimOperations, row: GroupMessageRow) -> ClaimRecord:
        """Return the record as the store has it."""
        claim = cls(groups, row.message, _decode(row.record), row.members)
        claim.standing = Standing(row.state)
        claim.winner = row.device
        return claim

    def note(self, now: Micros) -> None:
        """Write the record with the open commit."""
        row = GroupMessageRow(
            self.key,
            self.standing,
            self.standing is Standing.CLAIMABLE,
            self.winner,
            now,
            tuple(sorted(self.members)),
            _encode(self.about),
        )
        self._groups.deliveries.commits.open.of(GroupChanges).group_messages[self.key] = row

    @property
    def name(self) -> str:
        """The name of the device that has claimed the message; empty if that device was removed."""
        device = self._groups.deliveries.registry.numbered(self.winner)
        return device.name if device is not None else ""

    def claim(self, device: Device, now: Micros) -> GroupDecision:
        """Grant or refuse a device's claim. A repeated claim gets the same answer."""
        if self.standing is Standing.CLAIMABLE:
            if device.number not in self.members:
                raise Forbidden("this message was not for this device", id=f"{self.key:016x}")
            self.winner = device.number
            session = self._groups.deliveries.session(device)
            deliveries = self._groups.deliveries
            self._close(Standing.CLAIMED, f"claimed by {device.name}", device.name, now)
            deliveries.commits.record(
                Kind.SETTLED,
                now,
                session,
                msg=self.key,
                target=str(self._target),
                state=Standing.CLAIMED.name,
            )
        if self.winner == device.number:
            return GroupDecision(GroupVerdict.GRANT, device.name)
        return GroupDecision(GroupVerdict.DENY, self.name)

    @property
    def _target(self) -> Target:
        return Target(TargetKind.GROUP, self.about.group)

    def close(
        self, standing: Standing, reason: str, now: Micros, step: Step = Step.SUPPRESS
    ) -> None:
        """End the time in which the message can be claimed; `step` ends the deliveries that have
        not left."""
        self._close(standing, reason, "", now, step)
        self._groups.deliveries.commits.record(
            Kind.SETTLED,
            now,
            app=self.about.app,
            msg=self.key,
            target=str(self._target),
            state=standing.name,
            reason=reason,
        )

    def _close(
        self, standing: Standing, reason: str, by: str, now: Micros, step: Step = Step.SUPPRESS
    ) -> None:
        self.standing = standing
        told = self._retract(step, reason, now)
        about = self.about
        self._groups.decisions.tell(
            about.app,
            self._target,
            told,
            self.key,
            GroupDecision(GroupVerdict.RETRACT, by),
            now,
            priority=about.priority,
        )
        verdict = GroupVerdict.CLAIMED if self.winner else GroupVerdict.UNCLAIMED
        self._groups.decisions.report(
            about.app, about.source, about.correlation, GroupDecision(verdict, by), now
        )
        self.members = frozenset()
        self.note(now)
        self._groups.over(self)
        self._groups.deliveries.announce_message(self.key)

    def _retract(self, step: Step, reason: str, now: Micros) -> dict[int, Device]:
        """Take the message back from the members that have nothing of it; return the others, which
        have to be told."""
        deliveries = self._groups.deliveries
        left = set(self.members) - {self.winner}
        item = deliveries.items.get(self.key)
        if item is not None:
            left.difference_update(d.number for d in self._groups.fanouts.still_to_come(self.key))
            self._groups.fanouts.stop(self.key, now)
            for delivery in list(item.deliveries):
                number = delivery.session.device.number
                if number != self.winner and delivery.state is PENDING:
                    # A device that may have some of the message has to be told.
                    if not is_under_way(delivery):
                        left.discard(number)
                    deliveries.give_up(delivery, step, now, reason)
        found = ((number, deliveries.registry.numbered(number)) for number in sorted(left))
        return {number: device for number, device in found if device is not None}

    def woken(self, now: Micros) -> None:
        """Close the claim if its time is over."""
        if self.standing is Standing.CLAIMABLE and now >= self.about.before:
            self.close(Standing.UNCLAIMED, "nobody claimed it in time", now)


class ClaimableMessage(GroupDecider):
    """Decides about the open deliveries of a claimable message."""

    __slots__ = ("_groups", "claim")

    def __init__(self, groups: ClaimOperations, item: Item, claim: ClaimRecord) -> None:
        super().__init__(groups.deliveries, item)
        self._groups = groups
        self.claim = claim

    def dropped(self, delivery: Delivery, now: Micros) -> None:
        """Take the step for a message that the device dropped: too late, or unseen because another
        member has claimed it."""
        before = self.item.message.deliver_before
        late = before is not None and now >= before
        if late or self.claim.standing is Standing.CLAIMABLE:
            super().dropped(delivery, now)
        else:
            by = self.claim.name
            reason = f"claimed by {by}" if by else "nobody may claim it any more"
            self.deliveries.step(delivery, Step.SUPPRESS, now, reason)

    def withdraw(self, step: Step, now: Micros, reason: str) -> tuple[int, int]:
        """Take back the right to act on the message, and the message from members that were not
        shown it; too late once it is claimed."""
        claim = self.claim
        if claim.standing is not Standing.CLAIMABLE:
            return 0, len(self.item.deliveries)
        count = len(claim.members)
        claim.close(WITHDRAWN[step], reason, now, step)
        return count, 0

    def audience(self) -> Mapping[int, Device]:
        if self.claim.standing is not Standing.CLAIMABLE:
            return {}
        registry = self.deliveries.registry
        found = ((number, registry.numbered(number)) for number in sorted(self.claim.members))
        return {number: device for number, device in found if device is not None}
