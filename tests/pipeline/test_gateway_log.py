"""What a real gateway logs of ranked topics is decided in the same way again.

About `pipeline/replay.py`.
"""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from lasthop.clock import HOUR, MINUTE
from lasthop.core.gateway import Identity
from lasthop.decision.volume.policy_choice import OnePolicy, PolicyChoice
from lasthop.events import Event
from lasthop.pipeline.replay import COLUMNS, ReplayRow, audit, check, histories
from lasthop.simulation.disk import MemoryDisk
from lasthop.simulation.faults import Rehearsal
from lasthop.simulation.groups import add_groups
from lasthop.simulation.interconnects import add_interconnects
from lasthop.simulation.pulls import add_pulls
from lasthop.simulation.ranked import add_ranked
from lasthop.simulation.schedule import draw
from lasthop.wire.hop.feeds import OfflineReading, Report
from tests.core.ranked.phone import Phone
from tests.core.rig import APP, Rig


def a_day(seed: int, policy: str) -> list[ReplayRow]:
    """A device that comes and goes, a user who looks, a publisher who changes its mind."""
    random = Random(seed)
    rig = Rig()
    book = OnePolicy(PolicyChoice(policy))
    rig.identity = Identity(open_house=True, policies=book)
    rig.gateway = rig._start()
    phone = Phone(rig)
    phone.connect()
    phone.subscribe(max=3, threshold=1.0)
    connected = True
    published: list[int] = []
    read_alone: list[OfflineReading] = []
    for _ in range(60):
        rig.pass_time(random.randrange(1, 40) * MINUTE)
        action = random.random()
        if action < 0.45:
            fields = {}
            if random.random() < 0.5:
                fields = {"deliver_before": rig.now + random.randrange(1, 8) * HOUR}
            published += phone.publish(random.choice((0.5, 2.0, 3.0, 4.0)), **fields)
        elif action < 0.65 and connected:
            phone.look(random.choice((1, 2, None)))
        elif action < 0.65 and phone.kept:
            keys = tuple(sorted(phone.kept, key=lambda key: -phone.kept[key])[:2])
            read_alone.append(OfflineReading(rig.now // 1000, 2, keys))
            for key in keys:
                del phone.kept[key]
        elif action < 0.8 and published:
            key = random.choice(published)
            message = rig.store.messages([key]).get(key)
            if message is not None:
                rig.gateway.ranked.change_rank(APP, message, random.choice((0.1, 5.0)), [], rig.now)
                rig.run()
        elif connected:
            phone.lose()
            connected = False
        else:
            phone.resume()
            connected = True
            if read_alone:
                phone.report(Report(reads=tuple(read_alone)))
                read_alone = []
        if random.random() < 0.03:
            book.choice = PolicyChoice(
                random.choice(("unified", "buffer", "on-demand")), version="9"
            )
            rig.gateway.ranked.policies_changed(rig.now)
        rig.run()
    rows = []
    for line in rig.events():
        event = msgspec.convert(line, Event)
        if event.dev:
            rows.append(ReplayRow(*(getattr(event, name) for name in COLUMNS)))
    return rows


@pytest.mark.parametrize("policy", ["unified", "predictive", "on-demand", "on-line", "buffer"])
def test_a_gateway_s_decisions_are_taken_again(policy: str) -> None:
    decisions = 0
    for seed in range(8):
        agreement = check(a_day(seed, policy))
        assert agreement.first_difference == "", seed
        assert agreement.same == agreement.decisions
        decisions += agreement.decisions
    assert decisions > 100


RANKED_SCHEDULES = range(1, 20, 2)
"""Fault schedules with ranked topics; every other one has none."""


def rehearsed(seed: int) -> dict[str, list[ReplayRow]]:
    """The rows of the devices with ranked topics after a schedule of crashes and bad links."""
    schedule = draw(seed, messages=30)
    for add in (add_ranked, add_groups, add_interconnects, add_pulls):
        add(schedule)
    # A log has neither a device's room for messages nor what came before a backup.
    schedule.storage.clear()
    schedule.copy_at = None
    rehearsal = Rehearsal(schedule, MemoryDisk())
    assert rehearsal.run().verdict.good
    assert rehearsal._gateway.store is not None
    pages = rehearsal._gateway.store.events(0, 1 << 40)
    lines = (line for page in pages for line in page.lines.splitlines())
    rows = histories(msgspec.json.decode(line, type=Event) for line in lines)
    return {dev: rows[app, dev] for app, dev in rows if dev in schedule.ranked}


def test_what_crashing_gateways_did_is_what_the_model_of_their_policies_does() -> None:
    boots = devices = 0
    for seed in RANKED_SCHEDULES:
        for device, rows in rehearsed(seed).items():
            assert audit(rows).difference == "", (seed, device)
            boots, devices = boots + len({row.boot for row in rows}), devices + 1
    assert devices >= 5
    assert boots > 2 * devices
