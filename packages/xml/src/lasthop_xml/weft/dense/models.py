"""Probabilities that learn from the choices that are coded with them.

Everything here grows with use and is limited by what it describes: a column has a limited number of
entries and words.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from lasthop_xml.weft.dense.coder import RangeDecoder, RangeEncoder

Coder: TypeAlias = RangeEncoder | RangeDecoder

Bit: TypeAlias = list[int]
"""The probability of a 1 in 65536ths, and how often it was used."""
Bits: TypeAlias = dict[int, Bit]

_SLOWEST: Final = 60
"""The number of choices after which a model learns no slower, so that it can follow changes."""
_RATES: Final = tuple(655360 // (10 * seen + 16) for seen in range(_SLOWEST + 1))
LEAST: Final = 48
"""The least probability, in 65536ths: no choice is impossible."""
MOST: Final = 65536 - LEAST
EVEN: Final = 32768


def learn(model: Bit, choice: int) -> None:
    """Move a probability towards the choice that was made; the more choices it has seen, the less
    it moves."""
    probability, seen = model
    if choice:
        probability += (65536 - probability) * _RATES[seen] >> 16
        model[0] = probability if probability < MOST else MOST
    else:
        probability -= probability * _RATES[seen] >> 16
        model[0] = probability if probability > LEAST else LEAST
    if seen < _SLOWEST:
        model[1] = seen + 1


def choose(coder: Coder, models: Bits, key: int, choice: int) -> int:
    """Code a choice of two by the model with this key, and learn from it."""
    model = models.get(key)
    if model is None:
        model = models[key] = [EVEN, 0]
    choice = coder.bit(model[0], choice)
    learn(model, choice)
    return choice


def code_tree(coder: Coder, models: Bits, width: int, choice: int) -> int:
    """Code a number of `width` bits, whose values are not equally likely."""
    node = 1
    for place in range(width - 1, -1, -1):
        node = node << 1 | choose(coder, models, node, choice >> place & 1)
    return node - (1 << width)


def code_number(coder: Coder, models: Bits, number: int) -> int:
    """Code a number of at most 63 bits: its length, then its upper bits by their models."""
    length = code_tree(coder, models, 6, number.bit_length())
    if length < 2:
        return length
    place = length - 1
    value = 1
    for _ in range(min(place, 3)):
        place -= 1
        value = value << 1 | choose(coder, models, length << 4 | value | 256, number >> place & 1)
    if place:
        value = value << place | coder.bits(place, number & (1 << place) - 1)
    return value


class Counts:
    """How often each of a growing set of numbers was chosen."""

    __slots__ = ("places", "total", "weights")

    def __init__(self) -> None:
        self.places: dict[int, int] = {}
        """The index in `weights` of each number, in the order of the indexes."""
        self.weights: list[int] = []
        self.total = 0

    def add(self, number: int, weight: int, most: int) -> None:
        """Count a number once more; weights are halved when they add up to more than `most`."""
        at = self.places.get(number)
        if at is None:
            self.places[number] = len(self.weights)
            self.weights.append(weight)
        else:
            self.weights[at] += weight
        self.total += weight
        if self.total > most:
            self.weights = [(each + 1) >> 1 for each in self.weights]
            self.total = sum(self.weights)

    def code(self, coder: Coder, number: int, *, without: Counts | None = None) -> int:
        """Code one of the numbers that are counted here and not in `without`."""
        numbers = list(self.places)
        weights = self.weights
        total = self.total
        if without is not None and without.places:
            there = without.places
            numbers = [each for each in numbers if each not in there]
            weights = [self.weights[self.places[each]] for each in numbers]
            total = sum(weights)
        if len(numbers) == 1:
            return numbers[0]
        return numbers[coder.one_of(weights, total, numbers.index(number) if coder.encoding else 0)]

    def confidence(self) -> int:
        """Return a number below 16 that depends on how many numbers are counted and how often they
        were chosen: the key of a model."""
        return min(len(self.weights), 3) << 2 | min(self.total // 6, 3)


class ColumnModel:
    """The probabilities with which level max codes the values of one column; they learn from every
    value. The values themselves are in the `Column`."""

    __slots__ = (
        "after",
        "all",
        "bits",
        "by_key",
        "by_place",
        "by_word",
        "digits",
        "steps",
        "words",
    )

    def __init__(self) -> None:
        self.bits: Bits = {}
        self.steps: Bits = {}
        self.digits: Bits = {}
        self.after = Counts()
        """How often each run came where a different run had been guessed."""
        self.all = Counts()
        """How often each entry of the column occurred."""
        self.by_key: dict[int, Counts] = {}
        """How often each entry of the column occurred, by the current entry of the parent
        column."""
        self.words = Counts()
        self.by_word: dict[int, Counts] = {}
        """How often each word of a text occurred, by the word before it."""
        self.by_place: dict[int, Counts] = {}
        """How often each word of a text occurred, by the number of words before it."""
