"""Links as the decision sees them: the values of a technology at its best, or of one open channel
now.

Both are the same type, so that "wifi at its best" and "mobile as it is now" go through one cost
function (McGill thesis, section 3.5.5). Money is in integer millionths of the device's currency.
"""

from __future__ import annotations

from math import isfinite

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.errors import InvalidRequest

SMS_BYTES = 140
"""Bytes of binary data in one short message (McGill thesis, section 2.6)."""

UNKNOWN_LATENCY: Micros = 10 * SECOND
UNKNOWN_ENERGY = 1500
UNKNOWN_COVERAGE = 10
"""The values that are used for a link whose own are unknown: those of the worst network of figure
2.1 of the McGill thesis. Measurements may show a link to be better, but a link must not be
preferred for being unmeasured."""

MAX_CONTENTION = 100.0
"""The highest contention that is counted. A link a hundred times slower than its sender is useless
either way; the bound keeps one odd measurement from excluding a link for good."""


class Charge(msgspec.Struct, frozen=True, array_like=True):
    """The amounts that one transmission takes out of the budgets."""

    bytes: int = 0
    messages: int = 0
    units: int = 0
    """Units that the carrier counts: short messages of 140 bytes on SMS; on other links the same
    number as messages."""
    money: int = 0

    def __post_init__(self) -> None:
        if min(self.bytes, self.messages, self.units, self.money) < 0:
            raise InvalidRequest("a charge cannot be negative", charge=str(self))


class Tariff(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The prices of a link: per unit, per volume, or both; nothing by default.

    >>> Tariff(per_unit=1_500, unit=SMS_BYTES).price(512)
    6000.0
    """

    per_unit: int = 0
    unit: int = 0
    """Bytes in a unit; 0: a whole message is one unit, whatever its length."""
    per_volume: int = 0
    volume: int = 1 << 20

    def __post_init__(self) -> None:
        if self.per_unit < 0 or self.per_volume < 0:
            raise InvalidRequest(
                "a price cannot be negative", per_unit=self.per_unit, per_volume=self.per_volume
            )
        if self.unit < 0 or self.volume < 1:
            raise InvalidRequest(
                "a unit must have at least 0 bytes, and a volume at least 1",
                unit=self.unit,
                volume=self.volume,
            )

    @property
    def free(self) -> bool:
        """Whether sending over the link never costs anything."""
        return not (self.per_unit or self.per_volume)

    def units(self, size: int) -> int:
        """Return how many units a message of this size takes; an empty message takes one as
        well."""
        return max(1, -(-size // self.unit)) if self.unit else 1

    def price(self, size: int) -> float:
        """Return the price of what is really sent: a message of three and a half units costs
        four."""
        return self.per_unit * self.units(size) + self.per_volume * size / self.volume

    def charge(self, size: int, *, whole: bool = True) -> Charge:
        """Return what to book for `size` bytes. A fraction of a millionth is rounded up: a budget
        may be left with a little unspent, and is never overspent. If it is not a `whole` message,
        it is a piece of one, and the message is counted separately."""
        units = self.units(size) if whole or self.unit else 0
        money = self.per_unit * units - (-self.per_volume * size // self.volume)
        return Charge(size, int(whole), units, money)

    def least(self) -> Charge:
        """Return the charge of the smallest message: a budget with less room than this can carry no
        message."""
        return self.charge(1)


class Link(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One link to a device, with the values that the cost function looks at."""

    label: str
    """The name of the technology (wifi, mno, sms), as limits and calendars use it."""
    tariff: Tariff
    energy: int | None = None
    """Power that the device needs while transmitting, in milliwatts."""
    latency: Micros | None = None
    """Round-trip time of the link, in microseconds."""
    coverage: int | None = None
    """Range of the link, in metres."""
    throughput: int | None = None
    """Throughput of the link, in bytes per second."""
    contention: float = 1.0
    """How many times faster data is sent into the link than comes out of it; 1 is uncontended."""
    channel: int = 0
    """The number of the open channel, since a device may have several channels with one label; 0
    for a link at its best, without a channel."""

    def __post_init__(self) -> None:
        if not self.label:
            raise InvalidRequest("a link needs a label")
        for name in ("energy", "latency", "coverage"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise InvalidRequest(f"{name} cannot be negative", link=self.label, value=value)
        if self.throughput is not None and self.throughput < 1:
            raise InvalidRequest(
                "throughput must be at least 1 byte per second",
                link=self.label,
                value=self.throughput,
            )
        if not (isfinite(self.contention) and 1 <= self.contention <= MAX_CONTENTION):
            raise InvalidRequest(
                "contention must be between 1 and 100", link=self.label, value=self.contention
            )

    def transit(self, size: int) -> Micros:
        """Return how long a message of this size takes over the link, in microseconds, as far as is
        known."""
        latency = UNKNOWN_LATENCY if self.latency is None else self.latency
        if self.contention != 1:
            latency = round(latency * self.contention)
        if self.throughput is not None:
            latency += size * SECOND // self.throughput
        return latency

    def measured(
        self, *, latency: Micros | None, contention: float, throughput: int | None = None
    ) -> Link:
        """Return the same link with measured values in place of the declared ones."""
        return msgspec.structs.replace(
            self,
            latency=self.latency if latency is None else latency,
            contention=contention,
            throughput=self.throughput if throughput is None else throughput,
        )
