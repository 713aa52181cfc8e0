"""The files for operators are about this gateway: its metrics, its commands, its settings.

About `ops/`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lasthop.runtime.settings import names, variable
from tests.docs.blocks import arguments
from tests.docs.test_commands import parse
from tests.runtime.processes import GatewayProcess

ROOT = Path(__file__).parents[2]
OPS = ROOT / "ops"

DASHBOARD: dict[str, Any] = json.loads((OPS / "grafana" / "lasthop.json").read_text())

_METRIC = re.compile(r"\b((?:lasthop|process)_[a-z_]+)\b")

LATER = frozenset({"lasthop_surrogate_waiting"})
"""Metrics that are there only in a gateway with surrogates."""


def queries() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a gateway shows that has done something."""
    directory = tmp_path_factory.mktemp("ops")
    file = directory / "lasthop.toml"
    file.write_text('[traces]\nendpoint = "http://127.0.0.1:1/v1/traces"\n')  # Nobody is there.
    with GatewayProcess(directory / "data", "--config", str(file)) as up:
        up.push({"topic": "news", "body": "hello"})
        return up.request("GET", "/metrics")[1].decode()


def families(page: str) -> dict[str, str]:
    """Every metric that the page declares, by the names that a query uses for it."""
    found: dict[str, str] = {}
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE):
        endings = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        found |= {name + ending: kind for ending in endings}
    return found


def test_every_metric_of_the_dashboard_exists(metrics: str) -> None:
    known = families(metrics)
    assert len(queries()) > 12
    for query in queries():
        (name,) = _METRIC.findall(query)
        assert name in known or name in LATER, query
        # A counter only rises: what says something is its rate.
        assert ("rate(" in query) == (known.get(name) in ("counter", "histogram")), query


def test_the_dashboard_shows_every_metric_of_ours(metrics: str) -> None:
    shown = {name for query in queries() for name in _METRIC.findall(query)}
    for name, kind in families(metrics).items():
        if name.startswith("lasthop_") and kind != "histogram":
            assert name in shown, f"{name} is on no panel"


def test_metrics_that_come_with_surrogates_are_named_as_in_the_code() -> None:
    source = (ROOT / "src/lasthop/runtime/gauges.py").read_text()
    for name in LATER:
        assert f'"{name}"' in source


def test_panels_do_not_overlap_and_ask_the_chosen_source() -> None:
    taken: set[tuple[int, int]] = set()
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    for panel in DASHBOARD["panels"]:
        assert panel["datasource"]["uid"] == "${source}"
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def unit() -> dict[str, str]:
    text = (OPS / "systemd" / "lasthop.service").read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


def test_the_unit_starts_a_gateway() -> None:
    words = arguments(unit()["ExecStart"].removeprefix("/opt/lasthop/bin/"))
    assert words is not None
    assert words[0] == "up"
    parse(words)
    # The shutdown's own patience is well within systemd's.
    assert int(unit()["TimeoutStopSec"]) > 5
    assert unit()["ExecReload"].endswith("-HUP $MAINPID")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    text = (OPS / "systemd" / "lasthop.service").read_text()
    file = tmp_path / "lasthop.service"
    file.write_text(text.replace("/opt/lasthop/bin/lasthop", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert "Unknown" not in done.stderr
    assert "lasthop.service:" not in done.stderr, done.stderr


def container() -> str:
    return (OPS / "container" / "Containerfile").read_text()


def test_the_container_uses_settings_that_exist_and_files_that_are_there() -> None:
    known = {variable(name) for name in names()}
    used = set(re.findall(r"\b(LASTHOP_[A-Z_]+)=", container()))
    assert used
    assert used <= known
    for line in re.findall(r"^COPY (?!--from)(.+)$", container(), re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source


def test_ports_agree_between_the_container_and_what_surrounds_it() -> None:
    compose = (OPS / "container" / "compose.yaml").read_text()
    exposed = re.findall(r"^EXPOSE (.*)$", container(), re.MULTILINE)[0].split()
    for port in exposed:
        assert f'"{port}:{port}"' in compose
        assert re.search(rf"_LISTEN=0\.0\.0\.0:{port}\b", container())
    scraped = (OPS / "container" / "prometheus.yaml").read_text()
    assert f"lasthop:{exposed[0]}" in scraped
    for file in re.findall(r"- \./(\S+?):", compose):
        assert (OPS / "container" / file).exists(), file
