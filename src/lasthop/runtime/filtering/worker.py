"""The filter worker, which knows the expressions of all apps and reads one body after the other.

`python -m lasthop.runtime.filtering.worker` is started only by a gateway. It reads orders from its
standard input, writes answers to its standard output, and ends when the input ends.
"""

from __future__ import annotations

import sys
from typing import BinaryIO

from lasthop.core.topics.filters import LIMITS
from lasthop.runtime.filtering.frames import HEAD, Learn, decode_order, frame
from lasthop_xml.xpath.reading import Outcome, Reading, read
from lasthop_xml.xpath.subscriptions import Subscriptions


def serve(orders: BinaryIO, answers: BinaryIO) -> None:
    """Carry out the gateway's orders until their stream ends."""
    tables: dict[str, Subscriptions[str]] = {}
    while len(head := orders.read(HEAD)) == HEAD:
        order = decode_order(orders.read(int.from_bytes(head)))
        if isinstance(order, Learn):
            learn(tables, order)
            continue
        table = tables.get(order.app) or Subscriptions[str]()
        try:
            reading = read(table, order.content_type, order.body, LIMITS)
        except Exception as error:  # A bug here must not stop deliveries.
            reading = Reading(Outcome.FAILED, reason=type(error).__name__)
        answers.write(frame(reading))
        answers.flush()


def learn(tables: dict[str, Subscriptions[str]], order: Learn) -> None:
    """Add or remove expressions; adding a known one or removing an unknown one changes nothing."""
    for app, xpath, there in order.changes:
        table = tables.setdefault(app, Subscriptions[str]())
        if there:
            table.add(xpath, xpath)
        elif xpath in table:
            table.remove(xpath)


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
