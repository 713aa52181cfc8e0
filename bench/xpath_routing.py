"""Matches messages against many XPath subscriptions: our automaton, and lxml one by one.

    python -m bench.xpath_routing --subscriptions 10 --subscriptions 1000 --subscriptions 10000

Both get the same subscriptions and the same parsed messages (bench/data/xml_events), and must agree
about every pair. `selective` subscriptions are what routers mostly hold: each selects one receiver,
one restaurant, one number. `broad` ones compare a price, so that many of them match each message,
and listing the matches takes time however they are found.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from lxml import etree
from rich.console import Console
from rich.table import Table

from lasthop_xml.xas.xmlparse import parse_xml
from lasthop_xml.xpath.subscriptions import Subscriptions

SAMPLE = Path(__file__).parent / "data" / "xml_events" / "messages"
PREFIXES = {
    "s": "http://schemas.xmlsoap.org/soap/envelope/",
    "mts": "http://lasthop.example/ns/mts",
    "ev": "http://lasthop.example/ns/notify",
}
T = TypeVar("T")
SIZES = (10, 1000, 10_000)


class Row(NamedTuple):
    """One workload at one size; times are microseconds a message."""

    workload: str
    subscriptions: int
    matched: float
    """Subscriptions that a message matched, on average."""
    ours: float
    lxml: float
    built: float
    """Microseconds to add a subscription."""


def selective(number: int, draw: random.Random) -> str:
    match number % 4:
        case 0:
            receiver = f"amme://phone-{draw.randrange(2**16):04x}.lasthop.example/restaurant-client"
            return f"/s:Envelope/s:Header/mts:receiver[. = '{receiver}']"
        case 1:
            return f"//ev:item[name = 'id'][int = {draw.randrange(10_000)}]"
        case 2:
            word = draw.choice(("street", "dish", "restaurant"))
            return (
                f"//attributes/ev:item[name = '{word}' and string = 'Nr. {draw.randrange(10**6)}']"
            )
        case _:
            serial = draw.randrange(100_000)
            return f"/s:Envelope[s:Header/mts:serial = {serial}]/s:Body//message/event"


def broad(_number: int, draw: random.Random) -> str:
    return f"//ev:item[name = 'price']/double[. < {draw.randrange(100, 4000) / 100}]"


WORKLOADS: dict[str, Callable[[int, random.Random], str]] = {
    "selective": selective,
    "broad": broad,
}


def measure(sizes: Sequence[int], *, messages: int, rounds: int) -> list[Row]:
    documents = [path.read_bytes() for path in sorted(SAMPLE.glob("*.xml"))[:messages]]
    sequences = [parse_xml(document) for document in documents]
    trees = [etree.ElementTree(etree.fromstring(document)) for document in documents]
    Subscriptions[int]().add(
        0, "/a[b = 'c']"
    )  # the first subscription also pays for imports, so it is not measured
    rows = []
    for workload, make in WORKLOADS.items():
        for size in sizes:
            draw = random.Random(size)
            wanted = [make(number, draw) for number in range(size)]
            gc.collect()
            started = time.perf_counter()
            ours = Subscriptions[int]()
            for number, expression in enumerate(wanted):
                ours.add(number, expression, prefixes=PREFIXES)
            built = (time.perf_counter() - started) / size
            compiled = [etree.XPath(each, namespaces=PREFIXES) for each in wanted]

            def one_by_one(
                tree: etree._ElementTree, compiled: list[etree.XPath] = compiled
            ) -> set[int]:
                return {number for number, each in enumerate(compiled) if each(tree)}

            found, mine = _best(ours.matching, sequences, rounds)
            # lxml takes seconds at the larger sizes, so that it gets only a few messages.
            few = max(2, min(messages, 40_000 // size))
            expected, theirs = _best(one_by_one, trees[:few], 1 if size > 100 else rounds)
            if found[:few] != expected:
                raise AssertionError(f"{workload} {size}: we disagree with lxml")
            matched = sum(map(len, found)) / len(found)
            rows.append(Row(workload, size, matched, mine, theirs, built * 1e6))
    return rows


def _best(
    job: Callable[[T], set[int]], items: Sequence[T], rounds: int
) -> tuple[list[set[int]], float]:
    """Return the results, and the best round of each item, averaged, in microseconds."""
    shortest = [float("inf")] * len(items)
    found: list[set[int]] = []
    for _ in range(rounds):
        found = []
        for place, item in enumerate(items):
            started = time.perf_counter()
            found.append(job(item))
            shortest[place] = min(shortest[place], time.perf_counter() - started)
    return found, sum(shortest) / len(items) * 1e6


def run(
    *, sizes: Sequence[int] = SIZES, messages: int = 50, rounds: int = 5, as_json: bool = False
) -> int:
    """Measure and print; return the exit status."""
    rows = measure(sizes, messages=messages, rounds=rounds)
    if as_json:
        sys.stdout.write(msgspec.json.encode([row._asdict() for row in rows]).decode() + "\n")
        return 0
    table = Table(title="Microseconds to find who wants a message of 3.1 kB", title_justify="left")
    headings = ("subscriptions", "", "matched", "ours", "lxml, one by one", "ratio", "to subscribe")
    for heading in headings:
        table.add_column(heading, justify="left" if not heading else "right")
    for row in rows:
        table.add_row(
            f"{row.subscriptions:,}",
            row.workload,
            f"{row.matched:.1f}",
            f"{row.ours:,.0f}",
            f"{row.lxml:,.0f}",
            f"{row.lxml / row.ours:.1f}",
            f"{row.built:.0f}",
        )
    Console(width=100, highlight=False).print(table)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--subscriptions", type=int, action="append")
    parser.add_argument("--messages", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", dest="as_json")
    chosen = parser.parse_args()
    return run(
        sizes=chosen.subscriptions or SIZES,
        messages=chosen.messages,
        rounds=chosen.rounds,
        as_json=chosen.as_json,
    )


if __name__ == "__main__":
    sys.exit(main())
