"""Subscriptions that look into messages: XPath expressions, all of an app matched in one pass.

A message is read only if somebody among those whom it would reach has such a subscription. Small
ones are read at once, within what one turn of the driver may take; the others wait for the driver,
which has a worker for them (`core.topics.filter_queue`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from lasthop.core.registry import Device
from lasthop.wire.hop.topics import fits
from lasthop.wire.xml_errors import xml_refusals
from lasthop_xml.xas.limits import DEFAULT_LIMITS
from lasthop_xml.xpath.reading import NO_XML, Outcome, Reading, read, reads
from lasthop_xml.xpath.subscriptions import Subscriptions

MOST_FILTERS = 100_000
"""Different expressions of one app: one takes some 2 kB."""

WORK_PER_TURN: Final = 1000
"""What all messages together may cost between two turns of the driver, in events of a document that
meets few short expressions. The dearest form takes 10 microseconds for one: so this is 10 ms, in
which nobody else is served."""

BYTES_PER_EVENT: Final = 8
"""Bytes of a body that cost as much as an event, whatever is in them."""

CHARACTERS_PER_EVENT: Final = 64
"""Characters of an app's expressions that make every event cost as much again, at worst: each of
their steps may have to be looked at for each element."""

LIMITS: Final = DEFAULT_LIMITS
"""Of what the driver's worker reads: 100,000 events take about a second."""


class _Table:
    """The expressions of one app."""

    __slots__ = ("born", "devices", "holders", "length", "subscriptions")

    def __init__(self) -> None:
        self.subscriptions: Subscriptions[str] = Subscriptions(most=MOST_FILTERS)
        self.holders: Counter[str] = Counter()
        """How many subscriptions have each expression."""
        self.born: dict[str, int] = {}
        """When each came, in the order of all expressions."""
        self.devices: dict[int, Device] = {}
        """Those that have a filter."""
        self.length = 0
        """Characters of all expressions."""


class Sieve:
    """One message before its subscribers' filters. Without a `reading` nobody can tell yet."""

    __slots__ = ("_filters", "_known", "_topic", "app", "reading")

    def __init__(self, filters: Filters, app: str, topic: str, known: int) -> None:
        self._filters = filters
        self._topic = topic
        self._known = known
        self.app = app
        self.reading: Reading | None = None

    @property
    def known(self) -> bool:
        """Whether the message has been read."""
        return self.reading is not None

    def wants(self, device: Device) -> str | None:
        """None if the device does not want the message; otherwise a remark, which is empty unless
        the device gets it because nobody can tell."""
        reading = self.reading
        assert reading is not None, "nobody has read it yet"
        record = device.record
        remark = None
        for name in record.subscriptions:
            if not fits(name, self._topic):
                continue
            xpath = record.filters.get(name)
            if xpath is None or xpath in reading.matched:
                return ""
            if reading.unread:
                remark = f"its filter could not read the body: {reading.reason}"
            elif self._filters.born(self.app, xpath) > self._known:
                remark = "its filter is newer than the message"
        return remark


class Filters:
    """All expressions, by app."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}
        self._last = 0
        self._changes: dict[tuple[str, str], bool] | None = None
        self._left = WORK_PER_TURN
        self.outcomes: Counter[Outcome] = Counter()
        """Of all messages that filters were to look at since the start, for people."""

    def turned(self) -> None:
        """The driver has served everybody else: there is time again."""
        self._left = WORK_PER_TURN

    def add(self, device: Device) -> None:
        """Enter the filters of a device, as its record says."""
        for xpath in device.record.filters.values():
            self._enter(device, xpath)

    def remove(self, device: Device) -> None:
        """A device is gone."""
        for topic in list(device.record.filters):
            self.set(device, topic, "")

    def set(self, device: Device, topic: str, xpath: str) -> bool:
        """Give a subscription a filter, or with an empty one none; false when it was so. Raises
        what is wrong with the expression, and then has changed nothing."""
        filters = device.record.filters
        old = filters.get(topic, "")
        if old == xpath:
            return False
        if xpath:
            self._enter(device, xpath)
            device.record.filters = {**filters, topic: xpath}
        else:
            device.record.filters = {name: x for name, x in filters.items() if name != topic}
        if old:
            self._leave(device, old)
        return True

    def sieve(
        self,
        app: str,
        topic: str,
        devices: Mapping[int, Device],
        content_type: str,
        body: bytes | None,
    ) -> Sieve | None:
        """What a message for a topic's subscribers has to pass; None if nobody has a filter. Its
        body may be in the store only."""
        table = self._tables.get(app)
        if table is None or table.devices.keys().isdisjoint(devices):
            return None
        sieve = Sieve(self, app, topic, self._last)
        if body is not None:
            reading = self._read_now(table, content_type, body)
            if reading is not None:
                self.judge(sieve, reading)
        return sieve

    def judge(self, sieve: Sieve, reading: Reading) -> None:
        """Let a message be known by what was read of it."""
        sieve.reading = reading
        self.outcomes[reading.outcome] += 1

    def read(self, app: str, content_type: str, body: bytes) -> Reading:
        """Read a body here, however long that takes: for drivers without a worker."""
        table = self._tables.get(app)
        subscriptions = Subscriptions[str]() if table is None else table.subscriptions
        return read(subscriptions, content_type, body, LIMITS)

    def born(self, app: str, xpath: str) -> int:
        """When an expression came, which somebody must have."""
        return self._tables[app].born[xpath]

    def expressions(self) -> Iterable[tuple[str, str]]:
        """All expressions, with the app of each."""
        return [(app, xpath) for app, table in self._tables.items() for xpath in table.holders]

    def changes(self) -> Mapping[tuple[str, str], bool] | None:
        """Which expressions have come (or else gone) since this was asked before; None the first
        time."""
        changes, self._changes = self._changes, {}
        return changes

    def _read_now(self, table: _Table, content_type: str, body: bytes) -> Reading | None:
        """Read a body if there is time for it; None if there is not."""
        if not reads(content_type):
            return NO_XML
        weight = 1 + table.length // CHARACTERS_PER_EVENT
        size = len(body) // BYTES_PER_EVENT
        events = (self._left - size) // weight
        if events <= 0:
            return None
        limits = LIMITS._replace(events=events, size=WORK_PER_TURN * BYTES_PER_EVENT)
        reading = read(table.subscriptions, content_type, body, limits)
        if reading.outcome is Outcome.READ:
            self._left -= size + weight * reading.events
        else:
            self._left = 0  # It may have taken all of it.
        return None if reading.outcome is Outcome.TOO_LARGE else reading

    def _enter(self, device: Device, xpath: str) -> None:
        app = device.app
        table = self._tables.get(app) or _Table()
        if not table.holders[xpath]:
            with xml_refusals():
                table.subscriptions.add(xpath, xpath)
            table.length += len(xpath)
            self._last += 1
            table.born[xpath] = self._last
            self._changed(app, xpath, there=True)
        table.holders[xpath] += 1
        table.devices[device.number] = device
        self._tables[app] = table

    def _leave(self, device: Device, xpath: str) -> None:
        """A device has an expression no longer in one of its subscriptions."""
        table = self._tables[device.app]
        table.holders[xpath] -= 1
        if not table.holders[xpath]:
            del table.holders[xpath], table.born[xpath]
            table.subscriptions.remove(xpath)
            table.length -= len(xpath)
            self._changed(device.app, xpath, there=False)
        if not device.record.filters:
            del table.devices[device.number]
        if not table.holders:
            del self._tables[device.app]

    def _changed(self, app: str, xpath: str, *, there: bool) -> None:
        if self._changes is not None:
            self._changes[app, xpath] = there
