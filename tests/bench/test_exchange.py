"""The experiment of section 7.5: its TCP keeps TCP's promises, and its runs repeat."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from bench.exchange.command import measure, run
from bench.exchange.drawing import draw
from bench.exchange.networks import NETWORKS, Network
from bench.exchange.pipe import Pipe
from bench.exchange.protocols import PROTOCOLS, run as exchange
from bench.exchange.roundtrips import measure as round_trips
from bench.exchange.service import answer, call, serial_of
from bench.exchange.tcp import HEADERS, SEGMENT, SYN, Connection
from lasthop.clock import HOUR, MILLISECOND, SECOND, Micros
from lasthop.simulation.kernel import Kernel

TEN = 10 * MILLISECOND
STEADY = Network("steady", (TEN, TEN + 2, TEN + 4), 10**9, 10**9, 0.0)


class Line:
    """A connection that notes what arrives where, and when."""

    def __init__(self, network: Network, seed: int = 1) -> None:
        self.kernel = Kernel()
        random = Random(seed)
        self.up = Pipe(self.kernel, random, network, up=True)
        self.down = Pipe(self.kernel, random, network, up=False)
        self.at_client, self.at_server = bytearray(), bytearray()
        self.began = self.kernel.now()
        self.last: Micros = self.began
        self.connection = Connection(
            self.kernel, self.up, self.down, to_client=self._client, to_server=self._server
        )

    def _client(self, data: bytes) -> None:
        self.at_client += data
        self.last = self.kernel.now()

    def _server(self, data: bytes) -> None:
        self.at_server += data
        self.last = self.kernel.now()

    def settle(self) -> Micros:
        """Until nothing is left to happen; returns when the last octets arrived."""
        self.kernel.run(until=lambda: False, limit=HOUR)
        return self.last - self.began


@given(
    st.lists(st.integers(0, 9000), max_size=12),
    st.lists(st.integers(0, 9000), max_size=12),
    st.sampled_from([0.0, 0.02, 0.3]),
    st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_every_octet_arrives_once_and_in_order(
    there: list[int], back: list[int], loss: float, seed: int
) -> None:
    line = Line(NETWORKS[1]._replace(loss=loss), seed)
    random = Random(seed)
    sent = {"up": b"", "down": b""}
    for sizes, end, way in (
        (there, line.connection.client, "up"),
        (back, line.connection.server, "down"),
    ):
        for size in sizes:
            data = random.randbytes(size)
            sent[way] += data
            end.write(data)
    line.settle()
    assert bytes(line.at_server) == sent["up"]
    assert bytes(line.at_client) == sent["down"]


def test_opening_takes_one_round_trip_before_the_first_octet_leaves() -> None:
    line = Line(STEADY)
    line.connection.client.write(b"x")
    assert TEN * 3 // 2 <= line.settle() <= TEN * 3 // 2 + 100
    # SYN, acknowledgement of the SYN, of that, the octet, and its acknowledgement.
    assert line.up.octets == SYN + HEADERS + HEADERS + 1
    assert line.down.octets == SYN + HEADERS


@pytest.mark.parametrize("segments, round_trips", [(10, 1.5), (11, 2.5), (30, 2.5), (31, 3.5)])
def test_a_connection_starts_slowly(segments: int, round_trips: float) -> None:
    line = Line(STEADY)
    line.connection.client.write(bytes(segments * SEGMENT))
    assert line.settle() == pytest.approx(round_trips * TEN, rel=0.05)


def test_the_rate_is_kept() -> None:
    line = Line(STEADY._replace(up=800_000))
    line.connection.client.write(bytes(200_000))
    # 200 kB at 100 kB a second, and headers of 52 for each 1448.
    assert line.settle() == pytest.approx(2.09 * SECOND, rel=0.02)


def test_a_lost_syn_is_sent_again_after_a_second() -> None:
    times = []
    for seed in range(40):
        line = Line(STEADY._replace(loss=0.2), seed)
        line.connection.client.write(b"x")
        times.append(line.settle())
    assert any(time >= SECOND for time in times)
    assert any(time < 2 * TEN for time in times)


def test_calls_and_answers_carry_their_number() -> None:
    assert serial_of(call(17)) == serial_of(answer(17)) == 17
    with pytest.raises(ValueError, match="no sequence number"):
        serial_of([])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_a_run_repeats_exactly(protocol: str, network: Network) -> None:
    first = exchange(protocol, network, 20, seed=3)
    assert first == exchange(protocol, network, 20, seed=3)
    assert first.time > 0
    assert min(first.application, first.protocol, first.transport) > 0


def test_what_the_thesis_found_is_found() -> None:
    """Asynchronous calls win where latency counts; a connection for each costs a round trip."""
    for network in NETWORKS[1:]:
        sent = {name: exchange(name, network, 60, seed=1) for name in PROTOCOLS}
        assert sent["hop"].time < sent["PHTTP"].time / 3 < sent["HTTP"].time / 3
        least = network.round_trip[0] * 59
        assert sent["HTTP"].time - sent["PHTTP"].time > 0.9 * least
        assert sent["hop"].application < sent["HTTP"].application / 3
        assert sent["hop"].protocol < sent["PHTTP"].protocol / 10
        assert sent["HTTP"].transport > sent["PHTTP"].transport


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_the_estimate_of_round_trips_is_good_to_milliseconds(network: Network) -> None:
    result = round_trips(network, rounds=40)
    assert result.samples >= 30
    for side in (result.client, result.server):
        # Timestamps count milliseconds and are rounded down on both sides.
        assert 0 <= side.error.mean < 2
        assert side.error.deviation < 1


def test_figures_are_drawn(tmp_path: Path) -> None:
    points = [point for point in measure((5, 10), 2).points if point.network == "LAN"]
    files = draw(points, tmp_path)
    assert [file.name for file in files] == ["exchange.csv", "figure-7.1.png", "figure-7.4.png"]
    assert all(file.stat().st_size > 100 for file in files)
    lines = (tmp_path / "exchange.csv").read_text().splitlines()
    assert lines[0].split(",")[:4] == ["network", "protocol", "calls", "seconds"]
    assert len(lines) == 1 + len(points)


def test_people_get_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(calls=(5,), seeds=2) == 0
    said = capsys.readouterr().out
    assert "5 calls on virtual time" in said
    assert "table 7.10" in said


def test_machines_get_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(calls=(5,), seeds=1, as_json=True) == 0
    said = msgspec.json.decode(capsys.readouterr().out)
    assert len(said["points"]) == len(NETWORKS) * len(PROTOCOLS)
    assert {each["network"] for each in said["points"]} == {"LAN", "WLAN", "GPRS"}
    assert measure((5,), 1).points[0].calls == 5
