"""Every open delivery, and the only way in which one changes its state.

The mailroom is the state that acceptance, dispatch and contact share. `step` is the sole place
where a delivery moves through the life cycle: it looks the step up in the table, records the event
and the row, and forgets what has ended.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lasthop.clock import DAY, SECOND, Micros
from lasthop.core.delivery import Delivery, Item
from lasthop.core.effects import Changed, Effect
from lasthop.core.journal import Journal
from lasthop.core.lifecycle import TRANSITIONS, State, Step
from lasthop.core.registry import Device, Registry
from lasthop.core.session import Session
from lasthop.core.timers import Timers
from lasthop.message import KeyMaker


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one gateway takes on. Each number says who it protects."""

    body: int = 1 << 20
    """Bytes of a message: larger ones will travel as streams."""
    open_per_device: int = 100_000
    """A device that never comes back must not fill the store."""
    resident: int = 256 << 20
    """Bytes of bodies kept in memory for devices that are away; beyond it they stay in the store
    only."""
    context: int = 16 << 10
    """Bytes of a device's context report: it is kept in memory with the device."""
    subscriptions_per_device: int = 1000
    fanout_batch: int = 500
    """Deliveries of one message in one commit: a large topic must not hold up everyone else's
    commit."""
    window_messages: int = 1024
    window_bytes: int = 4 << 20
    """Credit given to a device: what it may send before the gateway has made it durable."""
    max_frame: int = (1 << 20) + 1024
    preserve: Micros = 7 * DAY
    heartbeat: Micros = 270 * SECOND
    """Below the five minutes after which many networks forget an idle connection."""


class Mailroom:
    """The open deliveries of all devices."""

    def __init__(
        self, *, registry: Registry, journal: Journal, keys: KeyMaker, limits: Limits
    ) -> None:
        self.registry = registry
        self.journal = journal
        self.keys = keys
        self.limits = limits
        self.timers: Timers[Delivery] = Timers()
        self.items: dict[int, Item] = {}
        self.effects: list[Effect] = []
        self.watched: Counter[int] = Counter()
        self._sessions: dict[int, Session] = {}
        self._touched: list[Session] = []
        self._reserve: dict[int, Item] = {}
        self._reserved = 0

    def session(self, device: Device) -> Session:
        """The device's session; it begins with the first need for one."""
        session = self._sessions.get(device.number)
        if session is None:
            session = self._sessions[device.number] = Session(device)
        return session

    def forget_session(self, device: Device) -> None:
        """The device is gone."""
        self._sessions.pop(device.number, None)

    def sessions_in_contact(self) -> list[Session]:
        """Everyone who is there now."""
        return [session for session in self._sessions.values() if session.channel]

    def open_delivery(self, item: Item, session: Session, now: Micros) -> Delivery:
        """Begin a delivery; its first event is the caller's to record."""
        delivery = Delivery(item, session, now)
        item.deliveries.append(delivery)
        session.open += 1
        return delivery

    def touch(self, session: Session) -> None:
        """Something changed that may let the session send."""
        if not session.touched:
            session.touched = True
            self._touched.append(session)

    def touched(self) -> list[Session]:
        """Sessions to look at, each once."""
        sessions, self._touched = self._touched, []
        for session in sessions:
            session.touched = False
        return sessions

    def step(self, delivery: Delivery, step: Step, now: Micros, reason: str = "") -> None:
        """Take one step of the life cycle and record it. A step that is not in the table is a
        bug."""
        state, kind = TRANSITIONS[delivery.state, step]
        delivery.state = state
        delivery.changed_at = now
        event = self.journal.story(delivery, kind, now, reason)
        if delivery.seq >= 0:
            event.epoch = delivery.epoch
            event.seq = delivery.seq
            event.link = delivery.session.link
        self.journal.append(delivery, event, now)
        if state >= State.DELIVERED:
            self._end(delivery)
        if self.watched:
            self.announce(delivery)

    def announce(self, delivery: Delivery) -> None:
        """Tell those who watch the message, once the change is durable."""
        key = delivery.item.message.key
        if key in self.watched:
            change = Changed(key, delivery.session.device.number, delivery.state)
            self.journal.when_durable(lambda _: self.effects.append(change))

    def _end(self, delivery: Delivery) -> None:
        session = delivery.session
        session.open -= 1
        item = delivery.item
        message = item.message
        replaceable = session.replaceable
        if replaceable and replaceable.get(message.replace_key or "") is delivery:
            del replaceable[message.replace_key or ""]
        item.deliveries.remove(delivery)
        if not item.deliveries and not item.spreading:
            self.items.pop(message.key, None)
            if self._reserve.pop(message.key, None) is not None:
                self._reserved -= item.size

    def keep_in_reserve(self, item: Item) -> None:
        """Nobody takes this durable message now: its body may leave memory when that is tight."""
        if not item.deliveries or item.message.key in self._reserve:
            return
        self._reserve[item.message.key] = item
        self._reserved += item.size
        while self._reserved > self.limits.resident:
            oldest = self._reserve.pop(next(iter(self._reserve)))
            self._reserved -= oldest.size
            oldest.evict()
