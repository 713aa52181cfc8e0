"""Subscriptions with a filter: all XPath expressions of an app are matched with a message in one
pass.

A body is parsed only if one of the devices that it would reach has a filter. Small bodies are
parsed at once, within what one turn of the driver may take; the others wait for the driver, which
has a worker for them (`core.topics.filter_queue`).
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
"""The largest number of different expressions of one app: an expression takes some 2 kB."""

WORK_PER_TURN: Final = 1000
"""The budget for parsing between two turns of the driver, for all messages together. The unit is an
event of a document that meets few short expressions; in the worst case it takes 10 microseconds, so
that nothing else is served for 10 ms."""

BYTES_PER_EVENT: Final = 8
"""The number of bytes of a body that cost as much as one event of the parser, whatever they
contain."""

CHARACTERS_PER_EVENT: Final = 64
"""The number of characters of an app's expressions by which the cost of every event grows by one,
at worst: each step of the expressions may have to be looked at for each element."""

LIMITS: Final = DEFAULT_LIMITS
"""The limits of what the driver's worker parses: 100,000 events take about a second."""


class _Table:
    """The expressions of one app."""

    __slots__ = ("born", "devices", "holders", "length", "subscriptions")

    def __init__(self) -> None:
        self.subscriptions: Subscriptions[str] = Subscriptions(most=MOST_FILTERS)
        self.holders: Counter[str] = Counter()
        """Number of subscriptions that have each expression."""
        self.born: dict[str, int] = {}
        """The number at which each expression was added, counted over all expressions."""
        self.devices: dict[int, Device] = {}
        """The devices that have a filter, by number."""
        self.length = 0
        """Number of characters of all expressions together."""


class Sieve:
    """Tells which subscribers of a topic want one message, by their filters. The answer is unknown
    until `reading` is set."""

    __slots__ = ("_filters", "_known", "_topic", "app", "reading")

    def __init__(self, filters: Filters, app: str, topic: str, known: int) -> None:
        self._filters = filters
        self._topic = topic
        self._known = known
        self.app = app
        self.reading: Reading | None = None

    @property
    def known(self) -> bool:
        """Whether the message has been parsed."""
        return self.reading is not None

    def wants(self, device: Device) -> str | None:
        """Return None if the device does not want the message; otherwise a remark, which is empty
        unless the device gets the message because the filter could not be applied."""
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
            # To drop what no filter can read would lose it without a trace: it is delivered, and
            # says why.
            if reading.unread:
                remark = f"its filter could not read the body: {reading.reason}"
            elif self._filters.born(self.app, xpath) > self._known:
                remark = "its filter is newer than the message"
        return remark


class Filters:
    """The filter expressions of all subscriptions, by app."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}
        self._last = 0
        self._changes: dict[tuple[str, str], bool] | None = None
        self._left = WORK_PER_TURN
        self.outcomes: Counter[Outcome] = Counter()
        """The number of messages since the start by the result of parsing them for filters; for the
        metrics."""

    def turned(self) -> None:
        """Renew the budget for parsing, because a new turn of the driver begins."""
        self._left = WORK_PER_TURN

    def add(self, device: Device) -> None:
        """Add the filters that a device's record has."""
        for xpath in device.record.filters.values():
            self._enter(device, xpath)

    def remove(self, device: Device) -> None:
        """Remove all filters of a device."""
        for topic in list(device.record.filters):
            self.set(device, topic, "")

    def set(self, device: Device, topic: str, xpath: str) -> bool:
        """Give a subscription a filter, or remove it if `xpath` is empty; return False if nothing
        changes. If the expression is wrong an error is raised, and nothing has changed."""
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
        """Return the sieve that tells which subscribers of a topic want a message; None if none of
        them has a filter. `body` is None if it is in the store only."""
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
        """Give a sieve the result of parsing its message, by which it knows which subscribers want
        the message."""
        sieve.reading = reading
        self.outcomes[reading.outcome] += 1

    def read(self, app: str, content_type: str, body: bytes) -> Reading:
        """Parse a body in this process, however long that takes: for drivers without a worker."""
        table = self._tables.get(app)
        subscriptions = Subscriptions[str]() if table is None else table.subscriptions
        return read(subscriptions, content_type, body, LIMITS)

    def born(self, app: str, xpath: str) -> int:
        """Return the serial number of an expression: a higher one was added later."""
        return self._tables[app].born[xpath]

    def expressions(self) -> Iterable[tuple[str, str]]:
        """Return all expressions, with the app of each."""
        return [(app, xpath) for app, table in self._tables.items() for xpath in table.holders]

    def changes(self) -> Mapping[tuple[str, str], bool] | None:
        """Return which expressions were added (True) or removed (False) since the last call; None
        at the first call."""
        changes, self._changes = self._changes, {}
        return changes

    def _read_now(self, table: _Table, content_type: str, body: bytes) -> Reading | None:
        """Parse a body if there is time for it in this turn; None if there is not."""
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
            self._left = 0  # How much work was done is unknown: it may have taken all.
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
        """Remove an expression from one of a device's subscriptions."""
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
