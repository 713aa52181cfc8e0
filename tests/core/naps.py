"""A feature that lives in the tests: devices may take naps.

It takes part in everything that a feature can take part in: an operation by which a device asks for
a nap, a row that remembers it, a part of the session, a gate at which deliveries wait meanwhile, a
sender that knows what waking somebody costs, a decider for what is said last, an observer, and the
return after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.core.contacts.channel_state import ChannelState
from lasthop.core.delivery import Delivery, Item
from lasthop.core.feature import (
    CoreFeature,
    Decider,
    DeliveryObserver,
    Gate,
    Leaving,
    Operate,
    Sender,
    SessionPart,
)
from lasthop.core.lifecycle import Step
from lasthop.core.session import Session
from lasthop.core.spine import Spine
from lasthop.errors import InvalidRequest
from lasthop.store.commit import Restored
from lasthop.wire.hop.frames import Headers, MessageFrame

NAP = 200
"""The operation by which a device asks for a nap, of so many seconds."""

LAST_WORDS = "last words"
"""The title of messages that the feature decides about."""

COST = 7
"""Of waking somebody, in millionths."""


class Nap(SessionPart):
    """The nap of one device."""

    def __init__(self, naps: Naps, session: Session) -> None:
        self._naps = naps
        self.session = session
        self.until: Micros = 0
        self.kept: list[Delivery] = []

    def before_sending(self, now: Micros) -> None:
        if now >= self.until:
            self.woken(now)

    def woken(self, now: Micros) -> None:
        """The nap is over."""
        if now >= self.until:
            kept, self.kept = self.kept, []
            for delivery in kept:
                self.session.enqueue(delivery)
                self._naps.deliveries.touch(self.session)


class LastWords(Decider):
    """What is said last counts as heard when the device has it."""

    def received(self, delivery: Delivery, now: Micros) -> None:
        self.steps.step(delivery, Step.DELIVER, now, "heard in its sleep")

    def frame(self, delivery: Delivery, frame: MessageFrame) -> MessageFrame:
        headers = frame.headers or Headers()
        extra = (*headers.extra, ("tone", "soft"))
        return msgspec.structs.replace(frame, headers=msgspec.structs.replace(headers, extra=extra))


class NapSender(Sender):
    """Sends like the plain one, and counts what that costs."""

    def __init__(self, plain: Sender) -> None:
        self._plain = plain

    def pump(self, session: Session, now: Micros) -> list[Delivery]:
        return self._plain.pump(session, now)

    def patience(self, channel: ChannelState) -> Micros:
        return self._plain.patience(channel)

    def left(self, delivery: Delivery, now: Micros) -> int:
        return COST


class Naps(CoreFeature, Gate, DeliveryObserver):
    """Lets devices nap."""

    def __init__(self, spine: Spine) -> None:
        self.deliveries = spine.deliveries
        self._naps: dict[Session, Nap] = {}
        self.ended_while_napping = 0

    def operations(self) -> Mapping[int, Operate]:
        return {NAP: self._nap}

    def _nap(self, session: Session, frame: MessageFrame, _: Headers, now: Micros) -> None:
        if not frame.body.isdigit():
            raise InvalidRequest("a nap has a number of seconds")
        nap = self._of(session)
        nap.until = now + int(frame.body) * SECOND
        commit = self.deliveries.commits.open
        commit.remember(session.device.number, "nap", b"%d" % nap.until)
        self.deliveries.timers.add(nap.until, nap)

    def _of(self, session: Session) -> Nap:
        nap = self._naps.get(session)
        if nap is None:
            nap = self._naps[session] = Nap(self, session)
            session.add_part(nap)
            session.sender = NapSender(self.deliveries.sender)
        return nap

    def owned(self, item: Item) -> None:
        item.gates = (*item.gates, self)
        item.observe(self)
        if item.message.title == LAST_WORDS:
            item.decider = LastWords(self.deliveries)

    def leaving(self, delivery: Delivery, channel: int, now: Micros) -> Leaving:
        nap = self._naps.get(delivery.session)
        if nap is None or now >= nap.until or isinstance(delivery.decider, LastWords):
            return Leaving.GO
        nap.kept.append(delivery)
        return Leaving.ASIDE

    def ended(self, delivery: Delivery) -> None:
        nap = self._naps.get(delivery.session)
        self.ended_while_napping += nap is not None and nap.until > delivery.changed_at

    def restore(self, restored: Restored, now: Micros) -> None:
        for row in restored.memories_of("nap"):
            device = self.deliveries.registry.numbered(row.device)
            if device is not None:
                nap = self._of(self.deliveries.session(device))
                nap.until = int(row.state)
                self.deliveries.timers.add(nap.until, nap)
