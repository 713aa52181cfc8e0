"""The benchmark's clients against the brokers that they are made for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.hop import peers, systems
from bench.hop.comparison import idle_bytes, wire
from bench.hop.pair import paired

# A broker takes its time to start on a busy machine.
pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.timeout(300)]


def need(package: str) -> None:
    absent = [name for name in peers.missing() if name.startswith(package)]
    if absent and os.environ.get("CI") == "true":
        pytest.fail(f"not installed: {', '.join(absent)}")
    if absent:
        pytest.skip(f"not installed: {', '.join(absent)}")


@pytest.mark.parametrize("qos,overhead", [(1, 16), (2, 24)])
def test_mosquitto_delivers_and_its_bytes_are_counted(
    tmp_path: Path, qos: int, overhead: int
) -> None:
    need("mosquitto")
    with peers.mosquitto(tmp_path / "mosquitto") as broker:
        system = systems.mosquitto(broker, qos=qos)
        with paired(system, "test", directory=tmp_path) as pair:
            fast = pair.run(2000)
            steady = pair.run(50, rate=200)
        assert fast.rate > 0
        assert len(steady.delays) == len(steady.late) == 50
        assert min(steady.delays) > 0
        assert wire(system, directory=tmp_path, warm=5, alone=5, bulk=200).alone == overhead
        assert idle_bytes(system, 50, directory=tmp_path) < 100_000


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_rabbitmq_delivers(tmp_path: Path, kind: str) -> None:
    need("rabbitmq")
    with peers.rabbitmq(tmp_path / "rabbitmq") as broker:
        for library in (False, True):
            system = systems.rabbitmq(broker, kind=kind, library=library)
            with paired(system, "test", directory=tmp_path) as pair:
                assert pair.run(2000).broker_cpu > 0
                assert len(pair.run(50, rate=200).delays) == 50
