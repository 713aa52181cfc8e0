"""The deliveries of one message to many devices, begun in bounded durable batches and in order.

The deliveries to a few devices begin in the commit that accepts the message. For many, each batch
follows the commit of the one before, so that a large topic holds up nobody; a later message of the
same source to one of these devices waits behind it. It also waits behind a message while it is not
known yet which devices want that message.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from lasthop.clock import Micros
from lasthop.core.deliveries import NOBODY_THERE, Deliveries
from lasthop.core.delivery import Delivery, Item
from lasthop.core.feature import Gate, OrderKey, Selection, order_of
from lasthop.core.lifecycle import Step
from lasthop.core.limits import OF_DEVICES
from lasthop.core.registry import Device
from lasthop.decision.decide import decide
from lasthop.errors import NotFound
from lasthop.events import Kind
from lasthop.message import TargetKind
from lasthop.store.commit import FanoutRow
from lasthop.wire import tracecontext

ACCEPTED, DEVICE = Kind.ACCEPTED, TargetKind.DEVICE

MOST_ASKED = 16
"""The largest number of fan-outs in a lane that are checked one by one to see whether a new message
has to wait for them; if there are more, the message waits in any case."""

BATCHES_PER_TURN = 4
"""The number of batches, of all messages together, that begin between two turns of the driver: a
delivery takes some five microseconds, so 2,000 take 10 ms."""

PASSED_OVER = 10
"""The number of devices that can be passed over, because they do not want a message, in the time
that it takes to begin one delivery."""


class Fanout:
    """A message whose deliveries are still being begun."""

    __slots__ = ("devices", "item", "lane", "last", "selection", "shared", "stored")

    def __init__(
        self,
        item: Item,
        devices: list[Device],
        last: int,
        *,
        stored: bool,
        selection: Selection | None = None,
    ) -> None:
        self.item = item
        self.selection = selection
        """Which of the devices want the message; None if all of them do."""
        self.lane = order_of(item.message)
        self.devices = devices
        """The devices whose deliveries have not begun, highest number first."""
        self.shared = True
        """Whether other fan-outs may use the same list of devices; it is copied before the first
        delivery."""
        self.last = last
        self.stored = stored
        """Whether the store has a row of the fan-out: most fan-outs are done in one commit and need
        none."""
        item.spreading = True

    @property
    def judged(self) -> bool:
        """Whether it is known which of the devices want the message."""
        return self.selection is None or self.selection.known

    @property
    def members(self) -> tuple[int, ...]:
        """The numbers of the devices whose deliveries are still to begin or are open, sorted."""
        begun = (delivery.session.device.number for delivery in self.item.deliveries)
        return tuple(sorted({*begun, *(device.number for device in self.devices)}))

    def awaits(self, devices: Mapping[int, Device]) -> bool:
        """Return whether the delivery to one of these devices is still to begin."""
        if len(devices) > 1:
            return True  # Probably; waiting without need does no harm.
        coming = self.devices
        for number in devices:
            at = bisect_left(coming, -number, key=lambda device: -device.number)
            if at < len(coming) and coming[at].number == number:
                return True
        return False


class Fanouts:
    """Begins the deliveries of accepted messages, in order and in batches."""

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries
        self._moments = deliveries.moments
        self._under_way: dict[int, Fanout] = {}
        """The fan-outs that are under way by message key, oldest first."""
        self._lanes: dict[OrderKey, dict[int, Fanout]] = {}
        self._sorted: tuple[Mapping[int, Device], int, list[Device]] = ({}, 0, [])
        """The devices of the last message, the state of the registry then, and the devices
        sorted."""
        self._left = BATCHES_PER_TURN * deliveries.limits.fanout_batch

    def turned(self) -> None:
        """Allow the next batches, because a new turn of the driver begins."""
        self._left = BATCHES_PER_TURN * self._deliveries.limits.fanout_batch

    def begin(
        self,
        item: Item,
        devices: Mapping[int, Device],
        now: Micros,
        selection: Selection | None = None,
    ) -> None:
        """Begin the deliveries of an accepted message: all at once if they are few and there is
        time for them, and not before those of an earlier message of its lane."""
        # Most messages: one device, and nothing of the lane to wait for.
        if len(devices) == 1 and not self._under_way and selection is None:
            for device in devices.values():
                self._deliver(item, device, now)
            return
        ordered = self._ordered(devices)
        fanout = Fanout(item, ordered, ordered[0].number, stored=False, selection=selection)
        waits = not fanout.judged or self._left <= 0 or self._is_behind(fanout, devices)
        self._add(fanout)
        if waits:
            self._note(fanout, 0)
        else:
            self._left -= self._deliver_batch(fanout, self._deliveries.limits.fanout_batch, now)

    def _ordered(self, devices: Mapping[int, Device]) -> list[Device]:
        """Return devices with the highest number first. A batch has many messages for the same
        devices, and sorting takes longer than anything else that is done at once."""
        changes = self._deliveries.registry.changes
        if self._sorted[0] is not devices or self._sorted[1] != changes:
            order = sorted(devices.values(), key=lambda d: -d.number)
            self._sorted = devices, changes, order
        return self._sorted[2]

    def _note(self, fanout: Fanout, cursor: int) -> None:
        """Write how far a fan-out has come, unless it is done and the store does not know of it."""
        done = not fanout.devices
        if done and not fanout.stored:
            return
        item = fanout.item
        key = item.message.key
        self._deliveries.commits.open.fanouts[key] = FanoutRow(key, cursor, fanout.last, done)
        rule = self._moments.targets[item.message.target.kind]
        if done:
            rule.spread(item)
        elif not fanout.stored:
            rule.spreading(item, fanout.members)
        fanout.stored = True

    def _is_behind(self, fanout: Fanout, devices: Mapping[int, Device]) -> bool:
        """Return whether an earlier message of the lane is still to begin for one of these
        devices."""
        ahead = self._lanes.get(fanout.lane, {})
        return len(ahead) > MOST_ASKED or any(f.awaits(devices) for f in ahead.values())

    def _add(self, fanout: Fanout) -> None:
        key = fanout.item.message.key
        self._under_way[key] = fanout
        self._lanes.setdefault(fanout.lane, {})[key] = fanout
        if fanout.selection is not None and not fanout.judged:
            rule = self._moments.targets[fanout.item.message.target.kind]
            rule.find_out(fanout.lane, fanout.item, fanout.selection)

    def go_on(self, key: int, now: Micros) -> None:
        """Continue with a message after it has become known which devices want it."""
        fanout = self._under_way.get(key)
        if fanout is not None:
            self._advance(self._lanes[fanout.lane], fanout.lane[0], now)
            self._deliveries.commits.hurry()

    def undecided(self, key: int) -> bool:
        """Return whether it is not known yet which devices want this message."""
        fanout = self._under_way.get(key)
        return fanout is not None and not fanout.judged

    def still_to_come(self, key: int) -> list[Device]:
        """Return the devices whose delivery of this message has not begun."""
        fanout = self._under_way.get(key)
        return fanout.devices if fanout is not None else []

    def stop(self, key: int, now: Micros) -> int:
        """Begin no more deliveries of a message, and return how many never begin.

        If they fit into one commit they all begin now, so that the log can say how they ended; not
        so if it is not known yet which devices want the message.
        """
        fanout = self._under_way.get(key)
        if fanout is None:
            return 0
        count = len(fanout.devices)
        if fanout.judged and count <= self._deliveries.limits.fanout_batch:
            self._deliver_batch(fanout, count, now)
            return 0
        for observer in fanout.item.observers:
            observer.stopped(fanout.item, now)
        self._stop_spreading(fanout)
        return count

    def hasten(self, key: int, now: Micros) -> None:
        """Begin all deliveries of a message that have not begun."""
        fanout = self._under_way.get(key)
        if fanout is not None:
            self._deliver_batch(fanout, len(fanout.devices), now)

    def proceed(self, now: Micros) -> None:
        """Begin the next batch of the fan-outs that are under way; lanes take turns.

        In each lane the oldest goes first, and the next one only when that is done: so no device
        gets a later message of a source before an earlier one.
        """
        if not self._under_way:
            return
        left = BATCHES_PER_TURN * self._deliveries.limits.fanout_batch
        for lane in list(self._lanes):
            if left <= 0:
                break
            self._lanes[lane] = fanouts = self._lanes.pop(lane)
            left -= self._advance(fanouts, lane[0], now)
        # The next batch waits for this one's commit, so the commit must not wait for more changes.
        self._deliveries.commits.hurry()

    def _advance(self, lane: dict[int, Fanout], app: str, now: Micros) -> int:
        """Begin the next batch of a lane, and return its cost in deliveries."""
        most = self._deliveries.limits.fanout_batch
        for capacity in self._moments.capacity:
            most = min(most, capacity(app))
        cost = 0
        while lane and cost < most:
            fanout = next(iter(lane.values()))
            if not fanout.judged:
                break
            cost += self._deliver_batch(fanout, most - cost, now)
        return cost

    def resume(self, row: FanoutRow) -> None:
        """Continue a fan-out that a stop of the gateway interrupted: for the present subscribers of
        the topic, or for the members that the group had when the message was accepted."""
        item = self._deliveries.items[row.message]
        message = item.message
        rule = self._moments.targets[message.target.kind]
        try:
            reached = rule.resume(item)
        except NotFound:
            reached = {}  # All devices of the target have been removed since.
        if reached is None:
            return
        devices = [d for n, d in reached.items() if row.cursor < n <= row.last]
        devices.sort(key=lambda d: -d.number)
        selection = rule.select(message.app, message, reached, resident=item.resident)
        fanout = Fanout(item, devices, row.last, stored=True, selection=selection)
        self._add(fanout)
        self._deliveries.commits.hurry()

    def _deliver_batch(self, fanout: Fanout, most: int, now: Micros) -> int:
        """Begin up to `most` deliveries, and return the cost: their number, and a share for each
        device that did not want the message."""
        deliveries = self._deliveries
        begun = passed = 0
        cursor = fanout.last
        # Messages of one batch share the sorted list until one of them takes from it.
        if fanout.shared:
            fanout.devices, fanout.shared = fanout.devices.copy(), False
        while fanout.devices and begun + passed // PASSED_OVER < most:
            device = fanout.devices.pop()
            cursor = device.number
            remark = "" if fanout.selection is None else fanout.selection.wants(device)
            if remark is None:
                passed += 1
                continue
            begun += 1
            # The device may have been removed since the message was accepted.
            if deliveries.registry.numbered(cursor) is device:
                self._deliver(fanout.item, device, now, remark)
        if fanout.devices:
            self._note(fanout, cursor)
        else:
            self._stop_spreading(fanout)
        return begun + passed // PASSED_OVER

    def _stop_spreading(self, fanout: Fanout) -> None:
        """End a fan-out: all deliveries have begun, or the rest shall not begin any more."""
        item = fanout.item
        item.spreading = False
        fanout.devices = []
        self._note(fanout, fanout.last)
        del self._under_way[item.message.key]
        lane = self._lanes[fanout.lane]
        del lane[item.message.key]
        if not lane:
            del self._lanes[fanout.lane]
        self._deliveries.release(item)

    def deliver(self, item: Item, device: Device, now: Micros, remark: str = "") -> None:
        """Begin the delivery of a message to one device, where the caller chooses the devices one
        by one; a remark becomes a part of the event's reason."""
        self._deliver(item, device, now, remark)

    def _deliver(self, item: Item, device: Device, now: Micros, remark: str = "") -> None:
        deliveries = self._deliveries
        session = deliveries.session(device)
        message = item.message
        limits = deliveries.limits
        room = limits.open_per_device - len(session.mailbox)
        # The source is asked only when there is little room.
        full = room <= limits.kept and (room <= 0 or message.source.startswith(OF_DEVICES))
        delivery = deliveries.open_delivery(item, session, now)
        for part in session.parts:
            part.decide(delivery)
        decider = delivery.decider
        decision = decide(
            deliver_after=message.deliver_after,
            deliver_before=message.deliver_before,
            in_contact=session.reachable,
            has_credit=session.has_credit(item.size),
            now=now,
        )
        reason = decision.reason
        # A delivery that its group or queue decides about is not judged by its own gates and
        # sender.
        alone = decider is deliveries.plain
        kept_by: Gate | None = None
        if alone:
            for gate in item.gates:
                keeps = gate.keeps(delivery)
                if keeps:
                    kept_by = gate
                    reason = reason if decision.until is not None else keeps
                    break
        if remark:
            reason = f"{remark}; {reason}" if reason else remark
        event = deliveries.commits.record_step(delivery, ACCEPTED, now, reason)
        event.source = message.source
        event.size = item.size
        event.rank = message.rank
        event.priority = message.priority
        event.reliability = message.reliability
        if message.target.kind is not DEVICE:
            event.target = str(message.target)
        if message.deliver_after is not None:
            event.after = message.deliver_after
        if message.deliver_before is not None:
            event.before = message.deliver_before
        if message.headers:
            event.trace = tracecontext.of_message(message.headers)
        # Messages of the gateway itself that a device needs to stay consistent arrive all the same.
        if full and not self._must_arrive(message.content_type):
            deliveries.step(delivery, Step.SUPPRESS, now, "mailbox full")
            return
        if message.immediate:
            if not session.reachable:
                deliveries.step(delivery, Step.GIVE_UP, now, NOBODY_THERE)
                return
            session.has_immediate = True
        # For a single device acceptance has refused this already (`check_possible`).
        if session.sender is not deliveries.sender and alone and message.target.kind is not DEVICE:
            against = session.sender.objection(message, now)
            if against is not None:
                deliveries.step(delivery, Step.SUPPRESS, now, str(against.reason()))
                return
        if message.replace_key is not None:
            self._supersede(delivery, message.replace_key, now)
        if alone or not decider.began(delivery, event, decision.until, now):
            if kept_by is not None:
                kept_by.keep(delivery, ready=decision.until is None)
            elif decision.until is None:
                session.enqueue(delivery)
                deliveries.touch(session)
            if decision.until is not None:
                deliveries.timers.add(decision.until, delivery)
        if message.deliver_before is not None:
            decider.watch(delivery, message.deliver_before)

    def _must_arrive(self, content_type: str) -> bool:
        word = self._moments.words.get(content_type)
        return word is not None and word.must_arrive

    def _supersede(self, delivery: Delivery, replace_key: str, now: Micros) -> None:
        old = delivery.decider.supersede(delivery, replace_key)
        if old is not None and self._deliveries.recall(old, now):
            self._deliveries.step(old, Step.REPLACE, now, f"replaced under {replace_key!r}")
