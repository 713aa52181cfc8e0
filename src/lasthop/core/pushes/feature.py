"""Pushes of PAP initiators: ordinary messages, with the reports and addresses that only PAP has.

A push is one message. To one address it goes like any other; to several it goes to all devices that
they stand for, each once, and every address is reported separately. An open push is an observer of
its message's `Item`; how a push ended is in the rows of its deliveries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

from lasthop.clock import Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.delivery import Delivery, Item
from lasthop.core.feature import CoreFeature, TargetRule
from lasthop.core.lifecycle import State, Step
from lasthop.core.publishing.fanout import Fanouts
from lasthop.core.publishing.objections import check_possible
from lasthop.core.publishing.submission import Submission, check_times
from lasthop.core.publishing.targets import PlainTarget
from lasthop.core.pushes.addresses import (
    AddressBook,
    AddressNotServed,
    AddressPlace,
    AddressUnknown,
)
from lasthop.core.pushes.default_routes import DefaultRoutes
from lasthop.core.pushes.notification import Notifications
from lasthop.core.pushes.push import PushInProgress
from lasthop.core.pushes.push_ids import PushIds, identify
from lasthop.core.pushes.report import refused, withdrawn
from lasthop.core.registry import Device, DeviceRecord
from lasthop.core.spine import Spine
from lasthop.errors import LasthopError, NotFound, Overloaded, Rejected, TooLarge
from lasthop.message import Message, Target, TargetKind
from lasthop.store.commit import Restored
from lasthop.store.pushes import (
    Addressee,
    KnownPush,
    OpenPush,
    PushChanges,
    PushesRestored,
    PushRow,
)
from lasthop.wire.pap.addresses import parse_address
from lasthop.wire.pap.codes import MessageState
from lasthop.wire.pap.documents import ReplaceMethod
from lasthop.wire.pap.outcomes import RELEASED, REPLACEMENT, PushReport, cancel_code
from lasthop.wire.pap.uaprof import fits

MAX_LISTED = 100_000
"""The largest number of devices that the addresses of a push stand for together, where they must be
listed; a device with several addresses counts for each. At seven octets each they are a row of 700
kB. A single group is not listed and has no limit."""

MAX_HASTENED = 10_000
"""The largest number of deliveries that are begun at once when a push is taken back in part while
its deliveries are still being begun."""

Places: TypeAlias = list[tuple[str, AddressPlace | LasthopError]]
"""What each address of a push stands for, or why the push is not for it."""

RETRY_SPREADING = 5.0
"""Seconds after which an initiator may try again; about a hundred thousand deliveries can be begun
in that time."""


class PushUnknown(NotFound):
    """The error for a push that this initiator has not submitted."""

    code = "push_unknown"


class CapabilitiesMismatch(Rejected):
    """The error if no client at the address has the capabilities that the initiator assumes."""

    code = "capabilities_mismatch"
    pap_code = 2005


class NotReplaceable(Rejected):
    """The error if the push to be replaced is not pending at any address."""

    code = "not_replaceable"
    pap_code = 3003


class TooManyDevices(TooLarge):
    """The error if the addresses of one push stand for too many devices."""

    code = "too_many_devices"
    pap_code = 3005


class Order(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An initiator's request to send a push, valid in form. The target of the submission is set to
    what the addresses stand for."""

    push_id: str
    addresses: tuple[str, ...]
    submission: Submission
    notify_to: str = ""
    version: str = ""
    assumed: Mapping[str, tuple[str, ...]] = {}
    """The capabilities that clients should have, by the names of UAProf. Devices that are known to
    differ do not get the push."""
    known: KnownPush | None = None
    """The store's row of this push-id; None if it is new."""
    replace: ReplaceMethod | None = None
    replaced: KnownPush | None = None
    """The store's row of the push to be replaced."""


class PushFeature(CoreFeature):
    """Accepts pushes, takes them back, and reports their outcome."""

    def __init__(self, spine: Spine) -> None:
        self._deliveries = deliveries = spine.deliveries
        self._acceptance = spine.acceptance
        self._fanouts = spine.fanouts
        identity = spine.identity
        self.notifications = Notifications(
            deliveries, identity.patience, random64=spine.random64, sender=identity.name
        )
        self._ppg_names = identity.ppg_names
        self.addresses = AddressBook()
        deliveries.registry.index(self.addresses)
        self._contacts = spine.contacts
        self._default_routes = DefaultRoutes(identity.default_routes)
        deliveries.registry.index(self._default_routes)
        self._ids = PushIds()
        self._open: dict[int, PushInProgress] = {}
        """The open pushes, by message key."""
        self._restored: dict[int, OpenPush] = {}

    def _watch(self, row: PushRow, item: Item) -> PushInProgress:
        push = self._open[row.message] = PushInProgress(row, item, self.notifications, self)
        item.observe(push)
        return push

    def closed(self, push: PushInProgress) -> None:
        """Forget a push that is over: the store knows how it ended."""
        self._open.pop(push.row.message, None)

    def note(self, row: PushRow) -> None:
        """Write a push with the open commit."""
        self._deliveries.commits.open.of(PushChanges).pushes[row.id] = row

    def listed(self, key: int) -> dict[int, Device]:
        """Return the devices that the addresses of an open push stood for, as far as they still
        exist."""
        return self._open[key].reach(self._deliveries.registry)

    def targets(self) -> Mapping[TargetKind, TargetRule]:
        return {TargetKind.PUSH: ListedTarget(self._deliveries, self._fanouts, self)}

    def check_device(self, app: str, record: DeviceRecord, device: Device | None) -> None:
        if device is None or record.addresses != device.record.addresses:
            self.addresses.check(app, record.addresses, device)

    def replied(self, message: int, device: int, reply: int) -> None:
        self.notifications.replied(message, device, reply)

    def wake(self, now: Micros) -> None:
        self.notifications.wake(now)

    def next_due(self) -> Micros | None:
        return self.notifications.next_due()

    def point(self, app: str, address: str, target: Target | None) -> None:
        """Let an address stand for a target, or remove it if `target` is None."""
        row = self.addresses.point(app, address, target)
        self._deliveries.commits.open.of(PushChanges).addresses[app, address] = row
        self._deliveries.commits.hurry()

    def submit(self, app: str, source: str, order: Order, now: Micros) -> Message:
        """Accept a push, or refuse it with nothing changed. One unknown address among several does
        not keep the push from the others."""
        identity = identify(app, source, order.push_id)
        self._ids.check(identity, order.known, order.push_id)
        self.notifications.check_room(order.notify_to)
        check_times(order.submission, now)
        places = self._resolve(app, source, order, now)
        for _, place in places:
            if isinstance(place, AddressPlace):
                self._acceptance.check_right(app, source, place.target)
        taken_back: list[Delivery] = []
        if order.replace is not None:
            places, taken_back = self._replacing(order, places, now)
        places = self._made(app, places, order, now)
        target, devices, addressees = _spread(order.push_id, places)
        submission = msgspec.structs.replace(order.submission, target=target)

        def attach(item: Item) -> None:
            row = PushRow(
                identity,
                item.message.key,
                app,
                order.push_id,
                addressees,
                order.notify_to,
                order.version,
            )
            self.note(row)
            push = self._watch(row, item)
            for place, addressee in enumerate(addressees):
                if addressee.code:
                    push.settle(place, refused(addressee, now), now)

        message = self._acceptance.accept_for(app, source, submission, devices, now, attach=attach)
        self._ids.use(identity)
        for delivery in taken_back:
            reason = f"replaced by the push {order.push_id!r}"
            self._deliveries.step(delivery, Step.REPLACE, now, reason)
        return message

    def is_used(self, identity: bytes) -> bool:
        """Return whether a push-id was used lately, even if that push is not durable yet."""
        return self._ids.is_used(identity)

    def _resolve(self, app: str, source: str, order: Order, now: Micros) -> Places:
        """Return what each address stands for, each once. If no address stands for a device that
        can have the push, raise the error of the first."""
        found: Places = []
        for text in dict.fromkeys(order.addresses):
            try:
                place = self._place(app, source, text)
                if order.assumed and place.implied is None:
                    place = _fitting(place, order)
                if not place.everyone and place.implied is None:
                    check_possible(self._deliveries, place.devices, order.submission, now)
                found.append((text, place))
            except LasthopError as error:
                found.append((text, error))
        first = found[0][1]
        if isinstance(first, LasthopError) and not any(
            isinstance(p, AddressPlace) for _, p in found
        ):
            raise first
        return found

    def _place(self, app: str, source: str, text: str) -> AddressPlace:
        """Return what an address stands for, or would stand for once this push is accepted."""
        try:
            return self.find(app, text)
        except AddressUnknown:
            address = parse_address(text)
            record = self._default_routes.record(app, source, address)
            # A device that was registered under this name keeps it.
            if record is None or self._deliveries.registry.find(app, address.short):
                raise
            return AddressPlace(Target(TargetKind.DEVICE, address.short), {}, implied=record)

    def _made(self, app: str, places: Places, order: Order, now: Micros) -> Places:
        """Return the places with a device for each address that needs no registration."""
        if not any(isinstance(place, AddressPlace) and place.implied for _, place in places):
            return places
        # From here on nothing may be refused: a device that is made stays.
        self._acceptance.check_form(app, order.submission, now)
        found: Places = []
        for text, place in places:
            if isinstance(place, AddressPlace) and place.implied is not None:
                record = msgspec.structs.replace(place.implied, registered_at=now)
                name = place.target.name
                # The address may be given twice, or a device may have its name.
                device = self._deliveries.registry.find(app, name)
                if device is None:
                    device = self._contacts.register(app, name, record, now)
                found.append((text, AddressPlace(place.target, {device.number: device})))
            else:
                found.append((text, place))
        return found

    def find(self, app: str, text: str) -> AddressPlace:
        """Return what an address stands for now."""
        address = parse_address(text)
        if self._ppg_names and address.gateway not in self._ppg_names:
            raise AddressNotServed(
                "the address belongs to another gateway", gateway=address.gateway
            )
        return self.addresses.find(app, address, self._deliveries.registry)

    def _replacing(
        self, order: Order, places: Places, now: Micros
    ) -> tuple[Places, list[Delivery]]:
        """Return the addresses that get the new push, and the deliveries of the old one whose place
        it takes."""
        if order.replaced is None:
            raise PushUnknown("there is no push to replace", push_id=order.push_id)
        assert order.replace is not None
        pending = self._pending(order.replaced.message, now)
        kept: Places = []
        taken_back: dict[int, Delivery] = {}
        for text, place in places:
            if isinstance(place, LasthopError):
                kept.append((text, place))
                continue
            sent: dict[int, Device] = {}
            for number, device in place.devices.items():
                before = MessageState.PENDING if number in pending else RELEASED
                done = REPLACEMENT[order.replace, before]
                if done.take_back:
                    taken_back[number] = pending[number]
                if done.send:
                    sent[number] = device
            if len(sent) == len(place.devices):
                kept.append((text, place))
            elif sent:
                some = Target(TargetKind.PUSH, order.push_id)
                kept.append((text, AddressPlace(some, sent, place.everyone)))
            else:
                kept.append((text, NotReplaceable("the push to be replaced is not pending there")))
        if not any(isinstance(place, AddressPlace) for _, place in kept):
            raise NotReplaceable(
                "the push to be replaced is not pending at any address", push_id=order.push_id
            )
        return kept, list(taken_back.values())

    def _pending(self, message: int, now: Micros) -> dict[int, Delivery]:
        """Return the deliveries of a message that can be taken back, by device number."""
        item = self._deliveries.items.get(message)
        if item is None:
            return {}
        self._hasten(item, now)
        recall = self._deliveries.recall
        return {d.session.device.number: d for d in item.deliveries if recall(d, now)}

    def _hasten(self, item: Item, now: Micros) -> None:
        """Begin every delivery that has not begun, so that each can be taken back separately."""
        key = item.message.key
        many = len(self._fanouts.still_to_come(key)) > MAX_HASTENED
        # Too many deliveries to begin in one commit, or it is not known yet which devices want it.
        if many or self._fanouts.undecided(key):
            raise Overloaded(
                "the deliveries of this push are still being begun", retry_after=RETRY_SPREADING
            )
        self._fanouts.hasten(key, now)

    # Cancellation and reports.

    def cancel(
        self, known: KnownPush, addresses: Iterable[str], now: Micros
    ) -> list[tuple[str, int]] | None:
        """Take a push back at these addresses, or at all addresses if none are named: at each
        address wholly or not at all.

        Return a code for each address; None if no delivery of the push is open, so that it is too
        late.
        """
        item = self._deliveries.items.get(known.message)
        push = self._open.get(known.message)
        if item is None or push is None:
            return None
        wanted = tuple(addresses) or tuple(a.text for a in push.row.addresses)
        asked = {n for n, a in enumerate(push.row.addresses) if a.text in wanted}
        if push.listed:
            self._hasten(item, now)
        for delivery in item.deliveries:
            if not asked.isdisjoint(push.places(delivery.session.device.number)):
                self._deliveries.recall(delivery, now)
        possible = push.cancellable(asked)
        if possible:
            self._take_back(item, push, possible, now)
        codes = {a.text: cancel_code(push.report(n)) for n, a in enumerate(push.row.addresses)}
        return [(text, codes.get(text, 2003)) for text in dict.fromkeys(wanted)]

    def _take_back(self, item: Item, push: PushInProgress, places: set[int], now: Micros) -> None:
        reason = "cancelled by its initiator"
        if not push.listed:
            self._acceptance.withdraw(item, Step.CANCEL, now, reason)
            return
        for delivery in list(item.deliveries):
            if places.issuperset(push.places(delivery.session.device.number)):
                self._deliveries.step(delivery, Step.CANCEL, now, reason)

    def reports(self, known: KnownPush) -> list[tuple[str, PushReport]] | None:
        """Return the reports of an open push by address; None if the push is over, and the store
        has them."""
        push = self._open.get(known.message)
        if push is None:
            return None
        return [(a.text, push.report(n)) for n, a in enumerate(push.row.addresses)]

    # After a restart.

    def restore(self, restored: Restored, now: Micros) -> None:
        """Restore addresses and notifications, and keep the open pushes until their messages are
        restored."""
        kept = restored.of(PushesRestored)
        self.addresses.restore(kept.addresses)
        self._restored = {push.row.message: push for push in kept.pushes}
        rows = {message: push.row for message, push in self._restored.items()}
        self.notifications.restore(kept.notifications, rows)

    def attach(self, item: Item, *, spreading: bool) -> None:
        """Restore the push that a restored message belongs to, if there is one."""
        found = self._restored.pop(item.message.key, None)
        if found is None:
            return
        push = self._watch(found.row, item)
        at = item.message.accepted_at
        for place, addressee in enumerate(found.row.addresses):
            if addressee.code:
                push.resume(place, refused(addressee, at))
            elif found.row.withdrawn_at:
                push.resume(place, withdrawn(found.row.withdrawn_at))
        for row in found.ended:
            push.ended_before(row.device, State(row.state), row.code, row.changed_at, row.reply)

    def finish(self, now: Micros) -> None:
        """Drop the restored pushes without an open message: they were over."""
        self._restored.clear()


class ListedTarget(PlainTarget):
    """The devices that the addresses of one push stood for when it was accepted."""

    def __init__(self, deliveries: Deliveries, fanouts: Fanouts, pushes: PushFeature) -> None:
        super().__init__(deliveries, fanouts)
        self._pushes = pushes

    def resume(self, item: Item) -> Mapping[int, Device]:
        return self._pushes.listed(item.message.key)


def _fitting(place: AddressPlace, order: Order) -> AddressPlace:
    """Return the devices at an address that have the assumed capabilities, as far as these are
    known."""
    devices = {
        number: device
        for number, device in place.devices.items()
        if fits(order.assumed, device.record.capabilities)
    }
    if not devices:
        raise CapabilitiesMismatch("no client at this address has the assumed capabilities")
    if len(devices) == len(place.devices):
        return place
    return AddressPlace(Target(TargetKind.PUSH, order.push_id), devices, place.everyone)


def _spread(
    push_id: str, places: Places
) -> tuple[Target, dict[int, Device], tuple[Addressee, ...]]:
    """Return the target and devices of the message, and what is stored of each address."""
    if len(places) == 1:
        ((text, place),) = places
        assert isinstance(place, AddressPlace)
        if place.target.kind is not TargetKind.PUSH:
            return place.target, dict(place.devices), (Addressee(text, place.everyone),)
    listed = sum(len(found.devices) for _, found in places if isinstance(found, AddressPlace))
    if listed > MAX_LISTED:
        raise TooManyDevices(
            "the addresses stand for too many devices; push to large groups one by one",
            devices=listed,
            limit=MAX_LISTED,
        )
    devices: dict[int, Device] = {}
    addressees: list[Addressee] = []
    for text, found in places:
        if isinstance(found, AddressPlace):
            devices.update(found.devices)
            numbers = tuple(sorted(found.devices))
            addressees.append(Addressee(text, found.everyone, numbers))
        else:
            addressees.append(Addressee(text, False, (), found.pap_code))
    return Target(TargetKind.PUSH, push_id), devices, tuple(addressees)
