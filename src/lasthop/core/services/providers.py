"""The devices that offer services, and which of them gets the next request.

The devices in contact take turns, in the order in which they came into contact; if none is in
contact, all devices that offer the service take turns. Choosing the next device costs one step in a
dictionary, however many devices there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from lasthop.core.publishing.submission import Submission
from lasthop.core.registry import Device, Index
from lasthop.errors import Conflict, NotFound, QuotaExceeded
from lasthop.message import Target, TargetKind
from lasthop.wire.hop.services import (
    MOST_NAMED,
    SERVICE_HEADER,
    Offer,
    Offers,
    Question,
    Service,
    encode,
)

MOST_OFFERED = 32
"""The largest number of services of one device: they are stored in its record."""

MOST_FOUND = 100
LARGEST_ANSWER = 512 << 10
"""The largest number of offers in an answer, and of their bytes: the answer is a message, whose
body has a limit."""


class _Providers:
    """The devices that offer one service."""

    __slots__ = ("everyone", "here")

    def __init__(self) -> None:
        self.everyone: dict[int, Device] = {}
        self.here: dict[int, Device] = {}
        """The devices in contact; the one whose turn is next comes first."""

    def next(self) -> Device:
        """Return the device whose turn it is, and put it behind the others."""
        waiting = self.here or self.everyone
        number = next(iter(waiting))
        device = waiting[number] = waiting.pop(number)
        return device

    def forget(self, number: int) -> None:
        self.everyone.pop(number, None)
        self.here.pop(number, None)


class ServiceIndex(Index):
    """All services of all apps, found by name, or by name and version."""

    def __init__(self) -> None:
        self._providers: dict[tuple[str, str], _Providers] = {}
        self._titles: dict[str, dict[str, Service]] = {}
        """By app, the interface of every name and version."""

    def added(self, device: Device) -> None:
        for service in device.record.services.values():
            self._enter(device, service, here=False)

    def removed(self, device: Device) -> None:
        for service in device.record.services.values():
            self._leave(device, service)

    def reach(self, app: str, name: str) -> Mapping[int, Device]:
        raise NotFound(
            "the devices of a service are known only when a message for it is accepted", target=name
        )

    def offer(self, device: Device, service: Service, *, here: bool) -> bool:
        """Let a device offer a service, in place of an earlier version; return False if it already
        does."""
        record = device.record
        old = record.services.get(service.name)
        if old == service:
            return False
        if old is None and len(record.services) >= MOST_OFFERED:
            raise QuotaExceeded("too many services", retry_after=60, limit=MOST_OFFERED)
        known = self._titles.get(device.app, {}).get(service.title)
        if known is not None and not known.same_as(service):
            others = self._providers[device.app, service.title].everyone
            # The only provider may change its own interface.
            if set(others) != {device.number}:
                raise Conflict(
                    "others offer this service with another interface: offer another version",
                    service=service.name,
                    version=service.version,
                )
        if old is not None:
            self._leave(device, old)
        record.services = {**record.services, service.name: service}
        self._enter(device, service, here=here)
        return True

    def withdraw(self, device: Device, name: str) -> bool:
        """End a device's offer of a service; return False if there was none."""
        services = dict(device.record.services)
        service = services.pop(name, None)
        if service is None:
            return False
        self._leave(device, service)
        device.record.services = services
        return True

    def came(self, device: Device) -> None:
        """Note that a device which offers services is in contact."""
        for service in device.record.services.values():
            for name in (service.name, service.title):
                self._providers[device.app, name].here[device.number] = device

    def went(self, device: Device) -> None:
        """Note that a device which offers services is no longer in contact."""
        for service in device.record.services.values():
            for name in (service.name, service.title):
                self._providers[device.app, name].here.pop(device.number, None)

    def assign(self, app: str, submission: Submission) -> None:
        """Choose the device that gets a message for a service: the message's target becomes that
        device, and a header names the service."""
        name = submission.target.name
        providers = self._providers.get((app, name))
        if providers is None:
            raise NotFound("nobody offers this service", app=app, service=name)
        submission.target = Target(TargetKind.DEVICE, providers.next().name)
        service = name.partition("@")[0]
        submission.headers = (*submission.headers, (SERVICE_HEADER, service))

    def find(
        self, app: str, question: Question, visible: Callable[[str], bool] = lambda name: True
    ) -> Offers:
        """Return the offers that match a question and whose name is `visible` to the asker, sorted
        by name and version."""
        found: list[Offer] = []
        room = LARGEST_ANSWER
        for offer in self._matching(app, question):
            if not visible(offer.service.name):
                continue
            room -= len(encode(offer))
            if room < 0 or len(found) == MOST_FOUND:
                return Offers(tuple(found), more=True)
            found.append(offer)
        return Offers(tuple(found))

    def _matching(self, app: str, question: Question) -> Iterator[Offer]:
        for title, service in sorted(self._titles.get(app, {}).items()):
            if question.name not in ("", service.name, title):
                continue
            if question.operation and all(o.name != question.operation for o in service.operations):
                continue
            providers = self._providers[app, title]
            named = dict(islice(providers.here.items(), MOST_NAMED))
            named |= dict(islice(providers.everyone.items(), MOST_NAMED))
            yield Offer(
                service,
                providers=len(providers.everyone),
                in_contact=len(providers.here),
                devices=tuple(device.name for device in islice(named.values(), MOST_NAMED)),
            )

    def _enter(self, device: Device, service: Service, *, here: bool) -> None:
        self._titles.setdefault(device.app, {})[service.title] = service
        for name in (service.name, service.title):
            providers = self._providers.setdefault((device.app, name), _Providers())
            providers.everyone[device.number] = device
            if here:
                providers.here[device.number] = device

    def _leave(self, device: Device, service: Service) -> None:
        for name in (service.name, service.title):
            providers = self._providers[device.app, name]
            providers.forget(device.number)
            if not providers.everyone:
                del self._providers[device.app, name]
        if (device.app, service.title) not in self._providers:
            titles = self._titles[device.app]
            del titles[service.title]
            if not titles:
                del self._titles[device.app]
