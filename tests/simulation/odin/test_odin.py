"""The Odin paper's experiments: what ours and others keep, lose, carry and spend.

About `simulation/odin/`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.odin import command
from bench.odin.drawing import can_draw
from lasthop.clock import HOUR, MILLISECOND, SECOND, Micros
from lasthop.simulation.odin.energy import BATTERY, REST, energy, index, operation
from lasthop.simulation.odin.ours import Experiment
from lasthop.simulation.odin.radio import BEARERS, UMTS, WIFI, Bearer, RehearsedRadio
from lasthop.simulation.odin.services import SERVICES, PushService, emulate
from lasthop.simulation.odin.setting import BREAKS, MINUTE, Setting, note

BROKEN = Setting(breaks=BREAKS)


def service(name: str) -> PushService:
    return next(each for each in SERVICES if each.name == name)


@pytest.mark.parametrize("bearer", BEARERS, ids=lambda bearer: bearer.name)
@pytest.mark.parametrize("breaks", [(), BREAKS], ids=["whole", "broken"])
def test_ours_loses_repeats_and_reorders_nothing_and_costs_eight_bytes_or_so(
    bearer: Bearer, breaks: tuple[tuple[Micros, Micros], ...]
) -> None:
    noted = Experiment(bearer, Setting(breaks=breaks)).run()
    assert (noted.submitted, noted.delivered) == (360, 360)
    assert noted.lost == noted.misordered == noted.duplicated == 0
    # At most 8 bytes of protocol a message, and a few for handshakes and what a break undid.
    assert noted.bytes_per_message is not None
    assert 256 < noted.bytes_per_message < 256 + 8 + 4
    usual = (bearer.wake + bearer.delay + bearer.jitter / 2) / MILLISECOND
    assert noted.latency_ms == pytest.approx(usual, rel=0.1)


def test_an_experiment_is_the_same_every_time_and_another_with_another_seed() -> None:
    setting = Setting(length=HOUR // 2)
    runs = [Experiment(UMTS, setting, seed=seed).run() for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@pytest.mark.parametrize(
    "name, kept", [("APNs", 1), ("MPNS", 32), ("GCM/FCM", 90), ("BBPS", 90), ("MQTT QoS 2", 90)]
)
def test_others_keep_what_their_policies_keep(name: str, kept: int) -> None:
    assert emulate(service(name), WIFI, Setting()).lost == 0
    noted = emulate(service(name), WIFI, BROKEN)
    waiting = [lasts // (20 * SECOND) for _, lasts in BREAKS]
    assert noted.lost == sum(max(0, each - kept) for each in waiting)
    assert noted.misordered == noted.duplicated == 0


def test_fcm_discards_everything_after_more_than_half_an_hour() -> None:
    long = Setting(breaks=((15 * MINUTE, 40 * MINUTE),))
    assert emulate(service("GCM/FCM"), WIFI, long).lost == 101


def test_a_throttled_service_replays_in_its_own_time() -> None:
    noted = emulate(service("BBPS"), WIFI, BROKEN)
    assert noted.delivered == 360


def test_what_arrives_is_counted_by_hand() -> None:
    setting = Setting(length=100 * SECOND, breaks=((60 * SECOND, 30 * SECOND),))
    assert setting.submissions == 5
    at = setting.moment
    shown = [(0, at(0) + 5000), (2, at(2) + 7000), (1, at(1) + 90_000), (2, at(2) + 1), (4, at(4))]
    noted = note("x", "wifi", setting, shown, carried=1040, joules=1.0)
    assert (noted.delivered, noted.lost, noted.misordered, noted.duplicated) == (4, 1, 1, 1)
    assert noted.bytes_per_message == 260
    # 3 was submitted without a link; the others took 5, 7, 90 and 0 ms, and 2 a second time.
    assert noted.latency_ms == pytest.approx(5)
    assert note("x", "wifi", setting, [], carried=9, joules=1.0).bytes_per_message is None


def test_a_3g_radio_by_hand() -> None:
    radio = RehearsedRadio(UMTS, 0)
    assert radio.packet(10 * SECOND) == 2 * SECOND
    assert radio.packet(11 * SECOND) == SECOND  # Still waking.
    assert radio.packet(14 * SECOND) == 0
    assert radio.packet(30 * SECOND) == 0  # On the shared channel.
    radio.settle(100 * SECOND)
    asleep = 10 + (100 - 47)
    dch = 2 + (14 - 12) + 5 + 5
    fach = (30 - 19) + 12
    assert radio.joules == pytest.approx(0.01 * asleep + 0.80 * dch + 0.46 * fach)
    assert radio.packet(100 * SECOND) == 2 * SECOND


def test_a_radio_that_is_not_used_sleeps() -> None:
    radio = RehearsedRadio(WIFI, 0)
    radio.settle(100 * SECOND)
    radio.settle(50 * SECOND)
    assert radio.joules == pytest.approx(1.0)


def test_a_battery_and_the_index_by_hand() -> None:
    assert operation(0.0, HOUR) == pytest.approx(BATTERY / REST / 3600)
    assert operation(3600 * REST, HOUR) == pytest.approx(BATTERY / (2 * REST) / 3600)
    # The second device idles half as long, so its service makes better use of it.
    values = index({"a": 10.0, "b": 8.0, "c": 4.0}, {"a": 100.0, "b": 50.0, "c": 100.0})
    assert values == pytest.approx({"a": 10 / 16, "b": 1.0, "c": 4 / 16})


def test_energy_is_the_radios_and_the_protocol_hardly_shows() -> None:
    rows = {row.service: row for row in energy(UMTS, Setting(length=HOUR))}
    assert max(row.index for row in rows.values()) == 1.0
    assert rows["lasthop"].index > 0.99
    assert rows["MQTT QoS 2"].index < rows["lasthop"].index
    assert rows["lasthop"].hours < rows["lasthop"].idle_hours / 5


def test_the_command_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(out=tmp_path, load=False, day=HOUR // 4, as_json=True) == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["reliability"]) == 24
    assert len(report["energy"]) == 12
    page = (tmp_path / "odin.html").read_text()
    assert "not public" in page
    assert "lasthop" in page
    if can_draw():
        assert page.count("data:image/png") == 4
        assert (tmp_path / "odin-loss.png").read_bytes().startswith(b"\x89PNG")
    assert command.run(out=None, load=False, day=HOUR // 4) == 0
    assert "162 of 360" in capsys.readouterr().out
