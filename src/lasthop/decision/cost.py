"""The cost function of the McGill thesis, section 3.5.2: which of two links is the better one.

    f = w_c ln(price) + w_e ln(energy) + w_l ln(latency) + w_v ln(1 / coverage)

The higher, the worse; only differences mean anything. Logarithms make "twice as dear" and "half the
energy" weigh the same. The printed formula has no value for a free link or an unknown latency:
`FREE` and the `UNKNOWN_` values of `links` say what happens then, so that `f` is always finite.
"""

from __future__ import annotations

from math import isfinite, log

import msgspec

from lasthop.decision.links import UNKNOWN_COVERAGE, UNKNOWN_ENERGY, Link
from lasthop.errors import InvalidRequest

LEAST_PRICE = 1e-3
"""The lowest price above zero, in millionths; lower prices are treated as this one. It is what a
few bytes cost on a cheap mobile plan."""

FREE = LEAST_PRICE / 10
"""The price that the formula uses for a free link: ten times cheaper than anything that costs. On
price a free link always wins, and other weights must be heavy to outweigh it, but they can."""

LEAST_LATENCY = 1_000
"""The lowest latency, a millisecond; lower values are treated as this one: nobody notices less, and
the logarithm of zero has no value."""

DIGITS = 9
"""The number of decimals of a cost. Costs are rounded so that two machines whose logarithms differ
in the last bit decide alike."""

WEIGHT_TOLERANCE = 1e-9


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What matters to a queue when links are compared; the four weights sum to one.

    (1, 0, 0, 0) means "always cheapest", and the default is balanced.
    """

    price: float = 0.25
    energy: float = 0.25
    latency: float = 0.25
    coverage: float = 0.25

    def __post_init__(self) -> None:
        every = (self.price, self.energy, self.latency, self.coverage)
        if not all(isfinite(weight) and weight >= 0 for weight in every):
            raise InvalidRequest("a weight cannot be negative", weights=every)
        if abs(sum(every) - 1) > WEIGHT_TOLERANCE:
            raise InvalidRequest(
                "the sum of the four weights must be 1", weights=every, total=sum(every)
            )


BALANCED = Weights()


class CostTerms(msgspec.Struct, frozen=True):
    """The four weighted terms of the cost of one link."""

    price: float
    energy: float
    latency: float
    coverage: float

    @property
    def total(self) -> float:
        return round(self.price + self.energy + self.latency + self.coverage, DIGITS)


def terms(link: Link, size: int, weights: Weights) -> CostTerms:
    """Return what each property contributes to the cost of sending `size` bytes over this link."""
    if size < 0:
        raise InvalidRequest("a size cannot be negative", size=size)
    tariff = link.tariff
    price = FREE if tariff.free else max(tariff.price(size), LEAST_PRICE)
    energy = UNKNOWN_ENERGY if link.energy is None else link.energy
    coverage = UNKNOWN_COVERAGE if link.coverage is None else link.coverage
    return CostTerms(
        price=weights.price * log(price),
        energy=weights.energy * log(max(energy, 1)),
        latency=weights.latency * log(max(link.transit(size), LEAST_LATENCY)),
        coverage=-weights.coverage * log(max(coverage, 1)),
    )


def cost(link: Link, size: int, weights: Weights = BALANCED) -> float:
    """Return the cost of sending `size` bytes over this link; the lower, the better."""
    return terms(link, size, weights).total


def difference(one: Link, other: Link, *, size: int, weights: Weights = BALANCED) -> float:
    """Return the cost of `one` minus that of `other`: negative if `one` is the better link."""
    return round(cost(one, size, weights) - cost(other, size, weights), DIGITS)
