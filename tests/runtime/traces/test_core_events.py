"""What the gateway really writes, made into journeys: as many as deliveries have ended.

About `runtime/traces/journeys.py` and `core/gateway.py`.
"""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from lasthop.clock import SECOND
from lasthop.core.lifecycle import State
from lasthop.events import Event, Kind
from lasthop.runtime.traces.journeys import Journeys, spans_of
from tests.core.rig import Rig, to

NAMES = ("one", "two", "three")

_decode = msgspec.json.Decoder(Event).decode


def lived(random: Random) -> Rig:
    """A gateway with a past: devices that come and go, crashes, messages at all kinds of ends."""
    rig = Rig()
    channels: dict[str, int] = {}
    for name in NAMES:
        channels[name] = rig.connect(name)
    rig.run()
    for _ in range(40):
        name = random.choice(NAMES)
        match random.randrange(6):
            case 0 | 1:
                ttl = rig.now + SECOND if random.random() < 0.5 else None
                rig.publish(to(name, b"x", deliver_before=ttl))
            case 2 if channels[name]:
                rig.lose(channels[name])
                channels[name] = 0
            case 3 if not channels[name]:
                channels[name] = rig.connect(name)
            case 4 if channels[name]:
                rig.ack(channels[name], len(rig.messages(channels[name])))
            case 5 if random.random() < 0.2:
                rig.crash()
                channels = dict.fromkeys(NAMES, 0)
            case _:
                rig.pass_time(SECOND // 2)
        rig.run()
    return rig


@pytest.mark.parametrize("seed", range(12))
def test_every_delivery_that_has_ended_is_one_journey(seed: int) -> None:
    rig = lived(Random(seed))
    events = [
        _decode(line)
        for page in rig.store.events(0, 1 << 30)
        for line in bytes(page.lines).splitlines()
    ]
    journeys = Journeys()
    over = [found for event in events if (found := journeys.note(event)) is not None]
    rows = list(rig.store.all_deliveries())
    ended = {row.message for row in rows if not row.open}
    assert len(over) == len(ended) > 0
    assert {journey.steps[-1].msg for journey in over} == ended
    assert len(journeys) == sum(row.open for row in rows)
    for journey in over:
        whole, *parts = spans_of(journey)
        assert journey.steps[0].kind == Kind.ACCEPTED
        assert "lasthop.partial" not in whole.attributes
        assert State[journey.steps[-1].kind.upper()].final
        assert sum(part.end - part.start for part in parts) <= whole.end - whole.start
