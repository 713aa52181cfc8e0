"""Filters in rehearsal: large bodies are read in virtual time, across crashes, always the same.

About `simulation/gateway_node.py` and `core/topics/filter_queue.py`.
"""

from __future__ import annotations

from random import Random

import pytest

from lasthop.clock import SECOND
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.publishing.submission import Submission
from lasthop.core.registry import DeviceRecord
from lasthop.message import Target, TargetKind
from lasthop.simulation.disk import MemoryDisk
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.kernel import Kernel

APP, SHOP = "app", "publisher:shop"
TOPIC = Target(TargetKind.TOPIC, "orders")


def order(goods: str) -> Submission:
    body = b"<order><goods>%s</goods>%s</order>" % (goods.encode(), b"<line/>" * 3000)
    return Submission(target=TOPIC, body=body, content_type="application/xml")


def rehearse(*, crash_at: int | None) -> list[tuple[int, str]]:
    """Which device gets which order, in the order of the log."""
    kernel = Kernel()
    disk = MemoryDisk()
    node = GatewayNode(
        kernel,
        Random(1),
        disk,
        Identity(open_house=True),
        before_commit=lambda n: n == crash_at and node.crashes == 0,
        started=lambda store: None,
        committed=lambda commit: None,
    )
    node.start()

    def prepare(gateway: Gateway, now: int) -> None:
        for goods in ("tea", "milk"):
            gateway.admin.register(APP, goods, DeviceRecord(token_hash=b"x"), now)
            gateway.topics.subscribe(APP, goods, "orders", now, xpath=f"/order[goods = '{goods}']")

    def publish(gateway: Gateway, now: int) -> None:
        broken = Submission(target=TOPIC, body=b"<order", content_type="application/xml")
        submissions = [order("tea"), broken, order("milk"), order("tea")]
        gateway.publish(APP, SHOP, submissions, now)

    def rest() -> None:
        kernel.run(until=lambda: False, limit=SECOND)

    node.act(prepare, lambda: None)
    rest()
    heard: list[bool] = []
    node.act(publish, lambda: heard.append(True))
    rest()
    if not node.up:
        node.start()
        if not heard:
            node.act(publish, lambda: None)
        rest()
    assert node.crashes == (crash_at is not None)
    rows = sorted(disk._store.all_deliveries(), key=lambda row: (row.message, row.device))
    bodies = disk._store.messages({row.message for row in rows})
    names = {1: "tea", 2: "milk"}
    return [
        (list(bodies).index(row.message), names[row.device])
        for row in rows
        if bodies[row.message].body
    ]


EXPECTED = [(0, "tea"), (1, "tea"), (1, "milk"), (2, "milk"), (3, "tea")]


def test_large_orders_reach_who_wants_them_and_broken_ones_everybody() -> None:
    assert rehearse(crash_at=None) == EXPECTED
    assert rehearse(crash_at=None) == EXPECTED


@pytest.mark.parametrize("crash_at", range(3, 6))
def test_a_crash_while_they_are_read_changes_nothing(crash_at: int) -> None:
    assert rehearse(crash_at=crash_at) == EXPECTED
