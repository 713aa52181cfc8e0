"""Lanes in a fault schedule: devices that know them, messages in queues, one of which needs no
order, and lanes that a device pauses for a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from lasthop.clock import SECOND
from lasthop.core.session import Session
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.schedule import LOOSE, PlannedMessage, Schedule
from lasthop.wire.hop.frames import Credit, LaneFrame

QUEUES = (None, None, "bulk", "chat", LOOSE)

PAUSES = 12
"""How often a lane is paused in one rehearsal, at most."""


def add_lanes(schedule: Schedule) -> None:
    """Let gateway and devices use lanes, with messages in several queues."""
    random = Random(schedule.seed ^ 0x1A9E)
    schedule.lanes = True
    for number, batch in enumerate(schedule.batches):
        plans = [_in_queue(plan, random) for plan in batch.plans]
        schedule.batches[number] = replace(batch, plans=plans)


def _in_queue(plan: PlannedMessage, random: Random) -> PlannedMessage:
    plain = plan.target.startswith("device:") and not plan.binding
    if not plain or not plan.source.startswith("publisher:"):
        return plan
    return replace(plan, queue=random.choice(QUEUES))


class LanePauses:
    """Pauses one lane of a device after the other, each for a while."""

    def __init__(
        self, kernel: Kernel, seed: int, gateway: GatewayNode, sessions: Callable[[], list[Session]]
    ) -> None:
        self._kernel = kernel
        self._random = Random(seed ^ 0xB10C)
        self._gateway = gateway
        self._sessions = sessions

    def begin(self) -> None:
        """Plan every pause of the rehearsal."""
        for _ in range(PAUSES):
            self._kernel.after(self._random.randint(0, 20 * SECOND), self._pause)

    def _pause(self) -> None:
        open_lanes = [
            (session, lane.id)
            for session in self._sessions()
            if session.greeted and session.lanes is not None
            for lane in session.lanes.out.open.values()
        ]
        if not open_lanes:
            return
        session, lane = self._random.choice(open_lanes)
        self._say(session, lane, Credit(0, 0))
        goes_on = self._random.randint(SECOND // 10, 8 * SECOND)
        self._kernel.after(goes_on, lambda: self._say(session, lane, Credit(1024, 1 << 20)))

    def _say(self, session: Session, lane: int, credit: Credit) -> None:
        gateway = self._gateway.gateway
        if gateway is not None and session.channel:
            gateway.frames_received(
                session.channel, [LaneFrame(lane, credit)], self._kernel.now(), local=True
            )
            self._gateway.turn()
