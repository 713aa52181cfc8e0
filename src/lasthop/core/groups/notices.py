"""Notices that tell devices a group's decisions: ordinary messages, numbered, durable and in order,
that never expire."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Item
from lasthop.core.feature import ABOUT_QUEUE
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.registry import Device
from lasthop.message import DEFAULT_PRIORITY, GATEWAY, Message, Target, TargetKind
from lasthop.wire.hop.decisions import GroupDecision, encode_decision
from lasthop.wire.hop.frames import DECISION_TYPE


class DecisionNotices:
    """Sends devices the decisions about group messages."""

    def __init__(self, deliveries: Deliveries, fanouts: Fanouts) -> None:
        self._deliveries = deliveries
        self._fanouts = fanouts

    def tell(
        self,
        app: str,
        target: Target,
        devices: Mapping[int, Device],
        about: int,
        decision: GroupDecision,
        now: Micros,
        *,
        priority: int = DEFAULT_PRIORITY,
        queue: str | None = None,
        bind: Callable[[Item], object] | None = None,
    ) -> None:
        """Send these devices the decision about a message of this priority and queue; `bind` gets
        the notice before its first delivery."""
        if not devices:
            return
        deliveries = self._deliveries
        message = Message(
            key=deliveries.keys.key(now),
            salt=deliveries.keys.salt(),
            app=app,
            source=GATEWAY,
            target=target,
            accepted_at=now,
            body=encode_decision(decision),
            content_type=DECISION_TYPE,
            priority=priority,
            in_reply_to=about,
            headers=() if queue is None else ((ABOUT_QUEUE, queue),),
        )
        deliveries.commits.add_message(message)
        item = deliveries.own(message)
        if bind is not None:
            bind(item)
        self._fanouts.begin(item, devices, now)
        deliveries.commits.hurry()

    def answer(self, device: Device, about: int, decision: GroupDecision, now: Micros) -> None:
        """Send one device the decision about a message."""
        target = Target(TargetKind.DEVICE, device.name)
        self.tell(device.app, target, {device.number: device}, about, decision, now)

    def report(
        self, app: str, source: str, correlation: int | None, decision: GroupDecision, now: Micros
    ) -> None:
        """Send the decision to the device that sent the message, if a device sent it and still
        exists."""
        kind, _, name = source.partition(":")
        if kind == TargetKind.DEVICE and correlation is not None:
            device = self._deliveries.registry.find(app, name)
            if device is not None:
                self.answer(device, correlation, decision, now)
