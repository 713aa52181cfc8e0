"""Devices that know groups, and a rig for them."""

from __future__ import annotations

from typing import Any

from lasthop.clock import SECOND
from lasthop.core.lifecycle import State
from lasthop.message import Binding, Target, TargetKind
from lasthop.wire.hop.decisions import GroupDecision, decode_decision
from lasthop.wire.hop.frames import (
    ALL_FEATURES,
    Headers,
    MessageFrame,
    Operation,
)
from tests.core.rig import APP, Rig, to

CREW, JOBS = Target(TargetKind.GROUP, "crew"), Target(TargetKind.QUEUE, "jobs")
ATOMIC: dict[str, Any] = {"binding": Binding.ATOMIC}
CLAIM: dict[str, Any] = {"binding": Binding.CLAIM}


class Crew(Rig):
    """Devices that know groups."""

    def connect(self, name: str = "phone", **claims: Any) -> int:
        claims.setdefault("features", int(ALL_FEATURES))
        return super().connect(name, **claims)

    def gather(self, *names: str, into: Target = CREW) -> list[int]:
        """Let devices come and belong to something."""
        channels = [self.connect(name) for name in names]
        for name in names:
            self.gateway.groups.join(APP, name, into, self.now)
        self.run()
        return channels

    def atomic(self, **fields: Any) -> int:
        """An atomic message for the crew, of ten seconds."""
        fields.setdefault("deliver_before", self.now + 10 * SECOND)
        (key,) = self.publish(to("group:crew", **ATOMIC, **fields))
        self.run()
        return key

    def back(self, name: str, channel: int, received: int, delivered: int | None = None) -> int:
        """A device comes back that remembers its channel's WELCOME."""
        welcome = self.welcome(channel)
        return self.connect(
            name,
            incarnation=welcome.incarnation,
            epoch=welcome.epoch,
            received=received,
            delivered=received if delivered is None else delivered,
        )

    def decisions(self, channel: int) -> list[tuple[int | None, GroupDecision]]:
        """What was decided, as this channel's device heard it."""
        return [
            (frame.headers.in_reply_to, decode_decision(frame.body))
            for frame in self.messages(channel)
            if frame.headers is not None and frame.headers.operation == Operation.DECISION
        ]

    def all_states(self, key: int) -> list[State]:
        return [State(row.state) for row in self.store.deliveries(key)]

    def claim(self, channel: int, key: int, *, seq: int = 0, own: int = 9) -> None:
        headers = Headers(operation=Operation.CLAIM, in_reply_to=key)
        self.hear(channel, MessageFrame(seq, own, None, headers, b""))
