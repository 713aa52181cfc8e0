"""What others do with an absent device: each rule by hand, one of them against the real thing."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from bench import volume
from bench.hop import peers
from bench.hop.processes import free_port, spawn, wait_for_port
from lasthop.clock import HOUR, Micros
from lasthop.decision.volume.inputs import Arrived
from lasthop.simulation.last_hop.parameters import Parameters
from lasthop.simulation.last_hop.run import score
from lasthop.simulation.last_hop.scenario import Scenario
from lasthop.simulation.last_hop.trace import ARRIVAL, KIND_BITS, LINK, LOOK, Trace, draw
from lasthop.simulation.last_hop.zoo import ZOO, Cage, SystemRule


def absent(rule: SystemRule, count: int, *, lifetime: Micros | None = None) -> list[int]:
    """One event a minute for a device that is away; what it gets when it comes back."""
    minute = HOUR // 60
    for key in range(1, count + 1):
        now = key * minute
        rule.arrived(Arrived(key, 0.5, None if lifetime is None else now + lifetime), now)
    return [event.key for event in rule.replayed(count * minute + 1)]


@pytest.mark.parametrize("name", ["Mosquitto", "VerneMQ"])
def test_a_full_queue_refuses_what_is_new(name: str) -> None:
    assert absent(ZOO[name](), 1000) == list(range(1, 1001))
    assert absent(ZOO[name](), 1200) == list(range(1, 1001))


@pytest.mark.parametrize("name", ["EMQX", "RabbitMQ"])
def test_a_full_queue_drops_its_head(name: str) -> None:
    assert absent(ZOO[name](), 1000) == list(range(1, 1001))
    assert absent(ZOO[name](), 1200) == list(range(201, 1201))


def test_fcm_discards_everything_when_the_hundred_and_first_comes() -> None:
    assert absent(ZOO["FCM"](), 100) == list(range(1, 101))
    assert absent(ZOO["FCM"](), 101) == []
    assert absent(ZOO["FCM"](), 121) == list(range(102, 122))


def test_apple_keeps_the_last_one() -> None:
    assert absent(ZOO["APNs"](), 50) == [50]


def test_ntfy_replays_the_last_twelve_hours_whether_they_have_expired_or_not() -> None:
    assert absent(ZOO["ntfy"](), 1000) == list(range(281, 1001))
    assert absent(ZOO["ntfy"](), 1000, lifetime=HOUR) == list(range(281, 1001))


@pytest.mark.parametrize("name", [name for name in ZOO if name not in ("APNs", "ntfy")])
def test_what_has_expired_takes_no_room_and_is_not_sent(name: str) -> None:
    assert absent(ZOO[name](), 1200, lifetime=HOUR) == list(range(1141, 1201))


def test_what_came_while_in_contact_is_on_the_device_and_read_best_first() -> None:
    kinds = [LINK, ARRIVAL, ARRIVAL, LINK, ARRIVAL, ARRIVAL, LOOK, LINK, LOOK]
    trace = Trace(
        moments=[at << KIND_BITS | kind for at, kind in enumerate(kinds)],
        end=9,
        ranks=[0.1, 0.2, 0.3, 0.4],
        expiries=[None] * 4,
        falls=[],
        fallen=-1.0,
    )
    cage = Cage(Parameters(max=1), ZOO["APNs"]())
    cage.play(trace)
    assert cage.read == {2, 4}
    assert cage.forwarded == 3


@pytest.mark.parametrize("name", ZOO)
def test_without_outages_everyone_is_the_on_line_policy(name: str) -> None:
    world = Parameters(years=0.1, expiration=24)
    trace = draw(world)
    best, cage = Scenario(world.on_line()), Cage(world, ZOO[name]())
    best.play(trace)
    cage.play(trace)
    assert cage.read == best.read
    assert cage.forwarded == best.forwarded
    assert score(trace, best=best, candidate=cage).loss == 0


def test_nobody_reads_what_was_not_forwarded_and_ours_waste_least() -> None:
    rows = {row.system: row for row in volume.measure("commuter", years=0.2, seeds=1)}
    assert set(ZOO) < set(rows)
    ours = rows["lasthop, unified"]
    assert ours.waste < 0.03
    assert ours.loss < 0.05
    for name in ("Mosquitto", "VerneMQ", "EMQX", "RabbitMQ", "FCM", "ntfy"):
        assert rows[name].waste > 0.4
        assert rows[name].loss < 0.02
    assert rows["APNs"].loss > 0.4
    assert rows["lasthop, on-line"].rank_retained == 1.0
    assert ours.rank_retained > 0.97


def test_a_long_absence_tells_the_rules_apart() -> None:
    world = replace(volume.WORLDS["traveller"][1], years=0.3)
    trace = draw(world)
    forwarded = {}
    for name in ("Mosquitto", "FCM", "APNs"):
        cage = Cage(world, ZOO[name]())
        cage.play(trace)
        forwarded[name] = cage.forwarded
    assert forwarded["Mosquitto"] > forwarded["FCM"] > forwarded["APNs"]


@pytest.mark.peer
@pytest.mark.slow
def test_the_real_mosquitto_does_what_its_model_does(tmp_path: Path) -> None:
    program = peers.mosquitto_program()
    if program is None or any(name.startswith("mosquitto") for name in peers.missing()):
        if os.environ.get("CI") == "true":
            pytest.fail("not installed: mosquitto")
        pytest.skip("not installed: mosquitto")
    port = free_port()
    user = "user root\n" if os.getuid() == 0 else ""
    settings = f"listener {port} 127.0.0.1\nallow_anonymous true\n{user}"
    (tmp_path / "mosquitto.conf").write_text(settings)
    broker = spawn([program, "-c", str(tmp_path / "mosquitto.conf")], log=tmp_path / "log")
    try:
        wait_for_port(port, broker)
        where = ["-h", "127.0.0.1", "-p", str(port), "-q", "1", "-t", "news"]
        device = ["mosquitto_sub", *where, "-c", "-i", "device"]
        subprocess.run([*device, "-E"], check=True, timeout=20)
        lines = "".join(f"{key}\n" for key in range(1, 1201))
        publish = ["mosquitto_pub", *where, "-l"]
        subprocess.run(publish, input=lines, text=True, check=True, timeout=20)
        with subprocess.Popen(device, stdout=subprocess.PIPE, text=True) as back:
            assert back.stdout is not None
            received = [back.stdout.readline().strip() for _ in range(1000)]
            # One that is sent now shows that nothing else was waiting.
            subprocess.run([*publish[:-1], "-m", "last"], check=True, timeout=20)
            received.append(back.stdout.readline().strip())
            back.terminate()
    finally:
        broker.terminate()
        broker.wait(timeout=10)
    assert received == [*map(str, absent(ZOO["Mosquitto"](), 1200)), "last"]
