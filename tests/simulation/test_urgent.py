"""A message of higher priority waits for one piece at most, on a virtual clock and a slow link.

About `core/pieces/pump.py`.
"""

from __future__ import annotations

from random import Random

import pytest

from lasthop.clock import MILLISECOND, MINUTE, SECOND, Micros
from lasthop.core.gateway import Gateway, Identity
from lasthop.core.limits import Limits
from lasthop.core.publishing.submission import Submission
from lasthop.device.message import Message
from lasthop.device.terms import DeviceTerms
from lasthop.message import Target, TargetKind
from lasthop.simulation.device_node import DeviceNode
from lasthop.simulation.disk import MemoryDisk
from lasthop.simulation.gateway_node import GatewayNode
from lasthop.simulation.interconnect import Interconnect
from lasthop.simulation.kernel import Kernel
from lasthop.simulation.link import Weather
from lasthop.simulation.publisher import APP
from lasthop.simulation.streams import Flows
from lasthop.wire.hop.transfer import LARGEST_PIECE

RATE = 20_000
"""Bytes a second: a poor mobile link."""

DELAY = 50 * MILLISECOND
COMMIT = 2 * MILLISECOND

ONE_PIECE = LARGEST_PIECE * SECOND // RATE
"""How long the largest piece takes to leave."""


class Screen(DeviceNode):
    """Notes when it has seen what."""

    def _show(self, message: Message, body: bytes | None = None) -> None:
        if message.opens_stream:
            super()._show(message, body)
        else:
            self.noted.append((message.key, self._kernel.now(), len(message.body)))

    noted: list[tuple[int, Micros, int]]


@pytest.mark.parametrize("large", ["a body", "a stream"])
def test_an_urgent_message_waits_for_one_piece_at_most(large: str) -> None:
    kernel, random = Kernel(), Random(1)
    node = GatewayNode(
        kernel,
        random,
        MemoryDisk(),
        Identity(open_house=True, limits=Limits(body=4 << 20)),
        started=lambda store: None,
        committed=lambda commit: None,
    )
    weather = Weather(delay=DELAY, jitter=0, rate=RATE)
    phone = Screen(
        kernel,
        random,
        DeviceTerms(app=APP, name="phone"),
        node,
        transactional=True,
        weather=lambda: (weather, Interconnect.STREAM),
        crash_at=set(),
    )
    phone.noted = []
    phone.flows = Flows(random)
    node.start()
    phone.start()

    def known() -> bool:
        return node.store is not None and node.store.device(APP, "phone") is not None

    kernel.run(until=known, limit=MINUTE)
    phone_is = Target(TargetKind.DEVICE, "phone")
    start = kernel.now()
    urgent: dict[int, Micros] = {}

    def publish(size: int, priority: int) -> None:
        def act(gateway: Gateway, now: Micros) -> None:
            submission = Submission(target=phone_is, body=bytes(size), priority=priority)
            receipt = gateway.publish(APP, "publisher:p", [submission], now, once=None)
            urgent[int(receipt.ids[0][:16], 16)] = now

        node.act(act, lambda: None)

    def stream() -> None:
        submission = Submission(target=phone_is, title="film", priority=4)

        def act(gateway: Gateway, now: Micros) -> None:
            stream = gateway.streams.open(APP, "publisher:p", submission, now)
            key = stream.key

            def more() -> None:
                def append(gateway: Gateway, now: Micros) -> None:
                    found = gateway.streams.get(key)
                    if found is not None and found.record.received < 1 << 20:
                        position = found.record.received
                        gateway.streams.append(found, position, bytes(1 << 18), now)

                node.act(append, lambda: None)
                kernel.after(SECOND, more)

            more()

        node.act(act, lambda: None)

    if large == "a body":
        publish(1 << 20, 4)
        urgent.clear()
    else:
        stream()
    for n in range(30):
        kernel.at(
            start + (2 + n) * SECOND + random.randint(0, SECOND // 2), lambda: publish(256, 8)
        )
    kernel.run(until=lambda: sum(s[2] == 256 for s in phone.noted) >= 30, limit=5 * MINUTE)
    waits = [when - urgent[key] for key, when, size in phone.noted if size == 256]
    assert len(waits) == 30
    # The release and the arrival are commits; 300 bytes take their own time to leave.
    own = DELAY + 4 * COMMIT + 400 * SECOND // RATE
    assert max(waits) <= ONE_PIECE + own, f"{max(waits) / 1000} ms"
    # And they are not merely lucky: with the large thing before them it would be a minute.
    assert kernel.now() < start + (1 << 20) * SECOND // RATE
