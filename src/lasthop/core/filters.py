"""Subscriptions that look into messages: XPath expressions, all of an app matched in one pass.

A message is read only if somebody among those whom it would reach has such a subscription. What is
not XML, in whichever form, matches none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lasthop.errors import LasthopError
from lasthop.wire.hop.topics import fits
from lasthop.wire.xas.formats import format_for
from lasthop.wire.xpath.subscriptions import Subscriptions

if TYPE_CHECKING:
    from lasthop.core.registry import Device

MOST_FILTERS = 100_000
"""Of one app: an expression takes some 2 kB."""


class Filters:
    """All expressions, by app, device and subscription."""

    def __init__(self) -> None:
        self._tables: dict[str, Subscriptions[tuple[int, str]]] = {}
        self._devices: dict[str, dict[int, Device]] = {}
        """Those that have a filter."""

    def add(self, device: Device) -> None:
        """Enter the filters of a device, as its record says."""
        for topic, xpath in device.record.filters.items():
            self._enter(device, topic, xpath)

    def remove(self, device: Device) -> None:
        """A device is gone."""
        for topic in list(device.record.filters):
            self.set(device, topic, "")

    def set(self, device: Device, topic: str, xpath: str) -> bool:
        """Give a subscription a filter, or with an empty one none; false when it was so. Raises
        what is wrong with the expression, and then has changed nothing."""
        filters = device.record.filters
        if filters.get(topic, "") == xpath:
            return False
        if xpath:
            self._enter(device, topic, xpath)
            device.record.filters = {**filters, topic: xpath}
            return True
        table = self._tables[device.app]
        table.remove((device.number, topic))
        if not len(table):
            del self._tables[device.app]
        device.record.filters = {name: x for name, x in filters.items() if name != topic}
        if not device.record.filters:
            del self._devices[device.app][device.number]
        return True

    def select(
        self,
        app: str,
        topic: str,
        devices: Mapping[int, Device],
        content_type: str,
        body: bytes,
    ) -> Mapping[int, Device]:
        """Those of a topic's subscribers who want this message."""
        table = self._tables.get(app)
        if table is None:
            return devices
        choosy = self._devices[app]
        concerned = choosy.keys() & devices.keys()
        if not concerned:
            return devices
        matched = _matching(table, content_type, body)
        return {
            number: device
            for number, device in devices.items()
            if number not in concerned or _wants(device, topic, matched)
        }

    def _enter(self, device: Device, topic: str, xpath: str) -> None:
        table = self._tables.get(device.app)
        if table is None:
            table = Subscriptions(most=MOST_FILTERS)
        table.add((device.number, topic), xpath)
        self._tables[device.app] = table
        self._devices.setdefault(device.app, {})[device.number] = device


def _wants(device: Device, topic: str, matched: set[tuple[int, str]]) -> bool:
    """Whether one of a device's subscriptions to this topic has no filter, or one that matches."""
    record = device.record
    return any(
        name not in record.filters or (device.number, name) in matched
        for name in record.subscriptions
        if fits(name, topic)
    )


def _matching(
    table: Subscriptions[tuple[int, str]], content_type: str, body: bytes
) -> set[tuple[int, str]]:
    try:
        events = format_for(_form(content_type)).decoder().decode(body)
        return table.matching(events)
    except LasthopError:
        return set()  # Not XML, or more than is looked at.


def _form(content_type: str) -> str:
    """Every type that ends in `+xml` is XML (RFC 7303)."""
    essence = content_type.partition(";")[0].strip().lower()
    return "application/xml" if essence.endswith("+xml") else essence
