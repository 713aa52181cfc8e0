"""Preferences as a feature: a device that has some gets a sender of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from lasthop.clock import MILLISECOND, Micros
from lasthop.core.contacts.channel_state import ChannelState
from lasthop.core.contacts.retransmission import FIRST_TIMEOUT
from lasthop.core.delivery import Delivery
from lasthop.core.effects import CloseChannel
from lasthop.core.feature import Asked, CoreFeature, Objection, Operate, Sender, WaitReason
from lasthop.core.lifecycle import Step
from lasthop.core.preferences.device_preferences import BUDGETS, CAPS, DevicePreferences
from lasthop.core.preferences.encoding import decode_preferences, encode_preferences
from lasthop.core.preferences.scheduler import PreferenceScheduler
from lasthop.core.registry import Device
from lasthop.core.session import Session
from lasthop.core.spine import Spine
from lasthop.core.transfer import Transfer
from lasthop.decision.budgets import Budgets, Closure
from lasthop.decision.choice import Choice
from lasthop.decision.ledger import Reserved, restored_budgets
from lasthop.decision.links import Charge, Link, Tariff
from lasthop.decision.preferences import Preferences
from lasthop.decision.reasons import in_words
from lasthop.decision.routes import Place
from lasthop.decision.schedule import Unsatisfiable
from lasthop.decision.transmission import receipt_timeout
from lasthop.events import Kind
from lasthop.store.commit import MemoryRow, Restored
from lasthop.wire.hop.frames import CloseCode, Headers, Hello, MessageFrame, Operation


class PreferenceFeature(CoreFeature):
    """Gives a sender to each device that has preferences, or to every device if all share
    limits."""

    def __init__(self, spine: Spine) -> None:
        self.deliveries = spine.deliveries
        self.dispatcher = spine.dispatcher
        self.contacts = spine.contacts
        self.scheduler = PreferenceScheduler(spine.deliveries)
        shared, zone = spine.identity.shared, spine.identity.zone
        self.shared = Budgets(shared, zone_name=zone) if shared else None
        """The budgets that all devices share; None if there are none."""

    def operations(self) -> Mapping[int, Operate]:
        return {Operation.PREFERENCES: self._prefer}

    def _prefer(self, session: Session, frame: MessageFrame, _: Headers, now: Micros) -> None:
        self._change(session, decode_preferences(frame.body), now)

    def prefer(self, app: str, name: str, preferences: Preferences, now: Micros) -> Device:
        """Set the preferences of a device: links, quiet hours and costs."""
        session = self.deliveries.named(app, name)
        self._change(session, preferences, now)
        return session.device

    def _change(self, session: Session, preferences: Preferences, now: Micros) -> None:
        """Apply new preferences of a device from now on."""
        device = session.device
        device.record.preferences = preferences
        self.deliveries.commits.open.devices[device.number] = device.row()
        terms = encode_preferences(preferences).decode()
        self.deliveries.commits.record(Kind.PREFERENCES_CHANGED, now, session, terms=terms)
        device_preferences = preferences_of(session)
        if device_preferences is None:
            self._add_sender(session, preferences)
        else:
            device_preferences.grants.revoke(now)
            device_preferences.prefer(preferences)
        self.deliveries.touch(session)

    def _add_sender(self, session: Session, preferences: Preferences) -> DevicePreferences:
        device_preferences = DevicePreferences(self.deliveries, session, preferences, self.shared)
        session.sender = PreferenceSender(self, device_preferences)
        return device_preferences

    def opened(self, session: Session) -> None:
        # Shared limits hold for every device, also for one without preferences of its own.
        if self.shared is not None:
            self._add_sender(session, Preferences())

    def meeting(
        self, session: Session, channel: int, hello: Hello, now: Micros
    ) -> CloseChannel | None:
        """Refuse a contact over a link that has reached its limit."""
        device_preferences = preferences_of(session)
        closure = (
            None if device_preferences is None else device_preferences.closed(hello.link or "", now)
        )
        return None if closure is None else link_closed(channel, closure, now)

    def before_commit(self) -> None:
        self.scheduler.note()

    def restore(self, restored: Restored, now: Micros) -> None:
        kept: dict[int, list[MemoryRow]] = {}
        for row in restored.memories_of(BUDGETS, CAPS):
            kept.setdefault(row.device, []).append(row)
        for row in kept.pop(0, ()):
            if self.shared is not None:
                limits = self.shared.limits
                self.shared = restored_budgets(row.state, now)
                self.shared.change(limits)
        for session in self.deliveries.sessions() if self.shared is not None else ():
            self._add_sender(session, Preferences())
        for device in self.deliveries.registry:
            preferences = device.record.preferences
            if preferences is None and device.number not in kept:
                continue
            device_preferences = self._add_sender(
                self.deliveries.session(device), preferences or Preferences()
            )
            for row in kept.get(device.number, ()):
                device_preferences.restore(row.name, row.state, now)


class PreferenceSender(Sender):
    """Sends to one device according to its preferences and budgets."""

    def __init__(self, feature: PreferenceFeature, device_preferences: DevicePreferences) -> None:
        self._feature = feature
        self._scheduler = feature.scheduler
        self._deliveries = feature.deliveries
        self.device_preferences = device_preferences
        self._promised: list[tuple[Delivery, Reserved]] = []
        """Deliveries that leave once their price is durably reserved."""

    def objection(self, asked: Asked, now: Micros) -> Objection | None:
        return self.device_preferences.objection(asked, now)

    def pump(self, session: Session, now: Micros) -> list[Delivery]:
        device_preferences = self.device_preferences
        again = list(device_preferences.parked) if device_preferences.reconsider else []
        if again:
            device_preferences.parked.clear()
            self._feature.dispatcher.transmit(session, again, now, "a link may carry it now")
        return self._scheduler.pump(session, device_preferences, now)

    def channel(
        self, session: Session, delivery: Delivery, usual: ChannelState, now: Micros
    ) -> ChannelState | None:
        chosen = self._scheduler.line(session, self.device_preferences, delivery, now)
        reserved = None if chosen is not None else self.device_preferences.promised.get(delivery)
        if reserved is not None:
            self._promised.append((delivery, reserved))
        return chosen

    def sent(self, session: Session, reason: str, now: Micros) -> None:
        if self._promised:
            promised, self._promised = self._promised, []
            self.device_preferences.write()
            keep = partial(self._keep, session, session.contacts, promised, reason)
            self._deliveries.commits.when_durable(keep)
        self._scheduler.settle(session, self.device_preferences, now)

    def _keep(
        self,
        session: Session,
        contact: int,
        promised: list[tuple[Delivery, Reserved]],
        reason: str,
        now: Micros,
    ) -> None:
        """Send deliveries whose price is durably reserved."""
        waiting = self.device_preferences.promised
        kept = [one for one, reserved in promised if waiting.get(one) is reserved]
        for delivery in kept:
            del waiting[delivery]
        if session.contacts == contact and session.greeted:
            self._feature.dispatcher.transmit(session, kept, now, reason)

    def left(self, delivery: Delivery, now: Micros) -> int:
        return self.device_preferences.left(delivery, now)

    def refund(self, delivery: Delivery, now: Micros) -> None:
        self.device_preferences.refund(delivery, now)

    def acknowledged(self, session: Session, received: Iterable[object], now: Micros) -> None:
        """Update the measurements of a channel from the device's acknowledgements."""
        for delivery in received:
            line = None
            if isinstance(delivery, Delivery):
                line = self.device_preferences.acknowledged(delivery, now)
            if line is None or line.gauge is None:
                continue
            estimate = line.gauge.estimate
            self._deliveries.commits.record(
                Kind.MEASURED,
                now,
                session,
                link=line.link,
                network=line.network,
                channel=line.channel,
                rtt=-1 if estimate.latency is None else estimate.latency,
                contention=estimate.contention,
                bytes=line.gauge.throughput,
            )
            self.device_preferences.reconsider = True

    def ended(self, delivery: Delivery, now: Micros) -> None:
        self.device_preferences.ended(delivery, now)

    def changed(self) -> None:
        self.device_preferences.reconsider = True

    def channels_changed(self, now: Micros) -> None:
        self.device_preferences.reconsider = True
        self.device_preferences.wake_resting()
        self.device_preferences.grants.revoke(now)

    def patience(self, channel: ChannelState) -> Micros:
        """Return the microseconds after which the link is chosen again: the choice knows when a
        receipt is missing, and whether a deadline comes first."""
        return min(FIRST_TIMEOUT, receipt_timeout(self.device_preferences.link_of(channel), 0))

    def settled(self, session: Session, now: Micros) -> None:
        """Close the channels over links that have just reached their limits, and tell the device
        until when."""
        closures, self.device_preferences.closures = self.device_preferences.closures, {}
        for line in session.lines if closures else ():
            closure = closures.get(line.link)
            if closure is not None:
                self._feature.contacts.lost(line.channel, str(closure.reason()), now)
                self._deliveries.effects.append(link_closed(line.channel, closure, now))

    def rests(self, delivery: Delivery, now: Micros) -> bool:
        device_preferences = self.device_preferences
        slot = device_preferences.slot(delivery, now)
        if isinstance(slot, Unsatisfiable):
            self._deliveries.give_up(delivery, Step.SUPPRESS, now, str(slot.reason()))
            return True
        if slot is None or slot.at <= now:
            return False
        self._rest(delivery, in_words(slot.reasons), slot.at, now)
        return True

    def _rest(self, delivery: Delivery, reason: str, until: Micros | None, now: Micros) -> None:
        resting = self.device_preferences.resting
        known = resting.get(delivery)
        if known is None or known.reason != reason:
            event = self._deliveries.commits.record_step(delivery, Kind.HELD, now, reason)
            event.at = until or 0
        resting[delivery] = WaitReason(reason, until)
        if until is not None:
            self._deliveries.timers.add(until, delivery)

    def tariff(self, link: Link) -> Tariff:
        return self.device_preferences.declared(link).tariff

    def route_choice(self, delivery: Delivery, size: int, now: Micros) -> Place:
        return partial(self.device_preferences.place, delivery, size, now)

    def given_to_carrier(self, delivery: Delivery, choice: Choice, now: Micros) -> None:
        device_preferences = self.device_preferences
        device_preferences.resting.pop(delivery, None)
        device_preferences.give_to_carrier(delivery, choice, now)
        self._scheduler.note_spending(device_preferences)

    def waits(self, delivery: Delivery, choice: Choice, now: Micros) -> None:
        self._rest(delivery, in_words(choice.reasons), choice.until, now)

    def carried(self, delivery: Delivery, spent: Charge | None, now: Micros) -> Charge | None:
        charged = self.device_preferences.settle(delivery, spent, now)
        self._scheduler.note_spending(self.device_preferences)
        return charged

    def waiting(self, session: Session, delivery: Delivery) -> WaitReason | None:
        device_preferences = self.device_preferences
        if delivery in device_preferences.parked:
            return WaitReason("no link may carry it again for the moment", device_preferences.due)
        if delivery in device_preferences.promised:
            return WaitReason("its price is being reserved durably")
        if (resting := device_preferences.resting.get(delivery)) is not None:
            return resting
        held = device_preferences.held.get(delivery.decider.order(delivery))
        if held is None or not any(row[2] is delivery for row in held.queue):
            return None
        if not session.greeted:
            return None  # What held it back was decided in a contact that is over.
        return held.waiting(delivery)

    def stir(self, now: Micros) -> None:
        if self.device_preferences.reconsider and self.device_preferences.resting:
            self.device_preferences.reconsider = False
            self.device_preferences.wake_resting()

    def covers(self, transfer: Transfer) -> bool:
        return self.device_preferences.grants.covers(transfer)

    def allowance(self, session: Session, transfer: Transfer) -> tuple[ChannelState | None, int]:
        channel, most = self.device_preferences.grants.allowance(transfer)
        return session.line_of(channel), most

    def piece_left(self, transfer: Transfer, size: int, now: Micros) -> None:
        self.device_preferences.grants.leaves(transfer, size, now)


def preferences_of(session: Session) -> DevicePreferences | None:
    """Return the state of a device that has preferences; None if it has none."""
    sender = session.sender
    return sender.device_preferences if isinstance(sender, PreferenceSender) else None


def link_closed(channel: int, closure: Closure, now: Micros) -> CloseChannel:
    """Return the effect that closes a channel over a link which has reached its limit, with the
    time after which the device may come back."""
    wait = -(-(closure.until - now) // MILLISECOND)
    return CloseChannel(channel, CloseCode.LINK_CLOSED, str(closure.reason()), wait)
