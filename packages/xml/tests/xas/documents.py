"""Documents of every shape, from a random source: sequences that XML can carry exactly."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

from lasthop_xml.xas.events import (
    DOCUMENT_END,
    DOCUMENT_START,
    TYPED_CONTENT,
    Event,
    attribute,
    comment,
    content,
    end,
    instruction,
    prefix,
    start,
    typed,
)
from lasthop_xml.xas.names import XSD_NS, XSI_NS, XSI_TYPE, Name
from lasthop_xml.xas.sequence import EventList, EventSequence
from lasthop_xml.xas.types.table import PRIMITIVES, lexical
from lasthop_xml.xas.types.texts import QName
from lasthop_xml.xas.types.times import Duration

SPACES = ("", "urn:one", "http://two.example/ns?a=1&b=2", "urn:drei-ä", "urn:five")
LOCALS = ("a", "b", "item", "näme", "名", "x-1.y_z", "longer-name-than-most-others")
TEXTS = (
    "x",
    " ",
    "a < b & c > d",
    "]]>",
    "tab\tline\nend\r",
    "ünï €uro 😀",
    "\u0085\u2028",
    "\"quoted\" and 'quoted'",
    "w" * 300,
    "ß" * 700,
)
ZONE = timezone(timedelta(hours=-5, minutes=-30))
VALUES: dict[str, tuple[Any, ...]] = {
    "string": ("s", "ä😀", "w" * 200),
    "boolean": (True, False),
    "byte": (-128, 127),
    "short": (-32768, 5),
    "int": (-1, 0, 127, 128, 16383, 16384, 2**31 - 1, -(2**31)),
    "long": (-(2**63), 1141290193000),
    "integer": (0, -1, 127, 128, 10**40, -(10**999)),
    "nonNegativeInteger": (0, 10**20),
    "positiveInteger": (1,),
    "nonPositiveInteger": (0, -3),
    "negativeInteger": (-1,),
    "unsignedByte": (255,),
    "unsignedShort": (65535,),
    "unsignedInt": (2**32 - 1, 300),
    "unsignedLong": (2**64 - 1,),
    "decimal": (Decimal("1.50"), Decimal("-0.001"), Decimal(0), Decimal("9" * 60)),
    "float": (0.5, 2.0**120, 0.10000000149011612, float("-inf")),
    "double": (8.0, 1e-320, -0.0, 0.1, 1e22, float("inf")),
    "date": (date(1813, 5, 22), date(9999, 12, 31), date(1, 1, 1)),
    "time": (time(1, 2, 3), time(23, 59, 59, 999999, tzinfo=UTC), time(0, 0, tzinfo=ZONE)),
    "dateTime": (
        datetime(2006, 3, 1, 9, 0, tzinfo=UTC),
        datetime(1, 1, 1),  # noqa: DTZ001
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=ZONE),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    ),
    "duration": (Duration(0, 0), Duration(14, 10**9), Duration(-1, -1), Duration(0, 86400 * 10**9)),
    "hexBinary": (b"\x00\xff", b"a" * 200),
    "base64Binary": (b"\x00\xff\xfe", b"b" * 300),
    "QName": (QName("", "a"), QName("xsd", "int")),
}


def exact(events: EventSequence) -> list[tuple[Any, ...]]:
    """Events as something that is equal only if nothing was lost.

    Python says that 1, 1.0 and True are equal, that an instant is the same in every zone, and that
    a NaN is no NaN; lexical forms know better.
    """
    return [
        (event.kind, event.name, type(event.value), lexical(event.name, event.value))
        if event.kind is TYPED_CONTENT
        else tuple(event)
        for event in events
    ]


class Documents:
    """Makes documents; the same seed makes the same ones."""

    def __init__(self, seed: int, *, all_in_namespaces: bool = False) -> None:
        self._random = random.Random(seed)
        self._none = () if all_in_namespaces else ("",)

    def next(self) -> EventList:
        """A document, its typed content in elements that declare it."""
        events = EventList([DOCUMENT_START])
        events += self._specials()
        events += [prefix(XSD_NS, "xsd"), prefix(XSI_NS, "xsi")]
        spaces = self._random.sample(SPACES[1:], 3)
        # Each namespace has one prefix, or several would be left in XML and one in XAS.
        events += [prefix(ns, f"p{index}") for index, ns in enumerate(spaces)]
        events += self._element((*self._none, *spaces), 0)
        events += self._specials()
        events.append(DOCUMENT_END)
        return events

    def _element(self, spaces: tuple[str, ...], depth: int) -> Iterator[Event]:
        pick = self._random.choice
        name = Name(pick(spaces), pick(LOCALS))
        yield start(name)
        keys = {Name(pick(spaces), pick(LOCALS)) for _ in range(self._random.randrange(4))}
        attributes = [attribute(key, pick((*TEXTS, ""))) for key in sorted(keys)]
        if self._random.random() < 0.4:
            local = pick(list(VALUES))
            attributes.append(attribute(XSI_TYPE, f"xsd:{local}"))
            self._random.shuffle(attributes)
            yield from attributes
            yield typed(Name(XSD_NS, local), pick(VALUES[local]))
        else:
            yield from attributes
            yield from self._mixed(spaces, depth)
        yield end(name)

    def _mixed(self, spaces: tuple[str, ...], depth: int) -> Iterator[Event]:
        after_text = False
        for _ in range(self._random.randrange(5)):
            if self._random.random() < 0.3 and not after_text:
                yield content(self._random.choice(TEXTS))
                after_text = True
                continue
            if depth < 5:
                after_text = False
                yield from self._element(spaces, depth + 1)

    def _specials(self) -> list[Event]:
        return self._random.sample(
            [comment(" a comment "), comment(""), instruction("go"), instruction("to", "x=1 y=2")],
            self._random.randrange(3),
        )


assert {Name(XSD_NS, local) for local in VALUES} == set(PRIMITIVES)
