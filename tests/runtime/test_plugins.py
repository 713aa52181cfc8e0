"""What other packages add is loaded if the settings name it, and refused in one line."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import httpx
import pytest

from lasthop.decision.policies import POLICIES
from lasthop.decision.routes import VARIANTS, Route
from lasthop.decision.volume.policy_choice import PolicyChoice, policy_of
from lasthop.errors import InvalidRequest
from lasthop.runtime.failure import Failure
from lasthop.runtime.plugins import load_carriers, load_policies
from lasthop.runtime.serve import running
from lasthop.runtime.settings import Settings, load
from tests.docs.blocks import ROOT, blocks

pytestmark = pytest.mark.anyio

PAGE = ROOT / "docs/how-to/extend.md"

SPARING = """
from lasthop.decision.policies import Policy

class Sparing(Policy):
    def room(self, *, on_device):
        return 1 - on_device

other = 5
"""


PIGEONS = """
from contextlib import asynccontextmanager

from lasthop.decision.links import Link, Tariff
from lasthop.decision.routes import Variation
from lasthop.delivery.carrier import Confirmed

variation = Variation(link=Link("pigeon", Tariff(), latency=10**9), confirms=True)
carried = []

class Pigeon:
    def carry(self, parcel, report):
        carried.append((parcel.route.address, parcel.body))
        report(Confirmed())

    def withdraw(self, number):
        return False

@asynccontextmanager
async def open(clock, reachable):
    yield Pigeon()
"""

CARRIERS = "lasthop.carriers"


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    policies, variants = dict(POLICIES), dict(VARIANTS)
    yield
    POLICIES.clear()
    POLICIES.update(policies)
    VARIANTS.clear()
    VARIANTS.update(variants)


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a package that offers these names."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def offer(
        package: str = "sparing",
        source: str = SPARING,
        group: str = "lasthop.policies",
        **names: str,
    ) -> None:
        (tmp_path / f"{package}_plugin.py").write_text(source)
        about = tmp_path / f"{package}-1.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        lines = [f"{name} = {value}" for name, value in names.items()]
        (about / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))

    return offer


def test_a_policy_that_is_named_takes_its_place_in_the_table(offer: Callable[..., None]) -> None:
    offer(sparing="sparing_plugin:Sparing")
    assert "sparing" not in POLICIES
    load_policies(["sparing"])
    load_policies(["sparing"])
    assert policy_of(PolicyChoice("sparing"), most=None).room(on_device=0) == 1


def test_nothing_is_loaded_that_is_not_named(offer: Callable[..., None]) -> None:
    offer(source="raise SystemExit('loaded')", sparing="sparing_plugin:Sparing")
    load_policies([])
    assert "sparing" not in POLICIES


@pytest.mark.parametrize(
    "name, value, source, why",
    [
        (
            "other",
            "x:y",
            "",
            "no installed package offers 'sparing' in the entry point group lasthop.policies",
        ),
        (
            "sparing",
            "nowhere:X",
            "",
            "'sparing' cannot be loaded: ModuleNotFoundError: No module named 'nowhere'",
        ),
        (
            "sparing",
            "broken_plugin:Sparing",
            "raise ValueError('two\\nlines')",
            "'sparing' cannot be loaded: ValueError: two lines",
        ),
        (
            "sparing",
            "plain_plugin:other",
            SPARING,
            "'sparing' is not a subclass of lasthop's Policy",
        ),
    ],
)
def test_a_policy_that_cannot_be_had_is_refused_in_one_line(
    offer: Callable[..., None], name: str, value: str, source: str, why: str
) -> None:
    offer(value.partition("_")[0], source, **{name: value})
    with pytest.raises(Failure) as caught:
        load_policies(["sparing"])
    assert str(caught.value) == f"plugins.policies: {why}"


def test_no_policy_takes_the_place_of_another(offer: Callable[..., None]) -> None:
    offer("taker", SPARING, unified="taker_plugin:Sparing")
    with pytest.raises(Failure, match=r"plugins\.policies: there is already a policy 'unified'"):
        load_policies(["unified"])


def test_a_name_that_two_packages_offer_is_nobodys(offer: Callable[..., None]) -> None:
    offer("one", SPARING, sparing="one_plugin:Sparing")
    offer("two", SPARING, sparing="two_plugin:Sparing")
    with pytest.raises(Failure, match="several installed packages offer 'sparing'"):
        load_policies(["sparing"])


async def test_a_gateway_does_not_start_without_what_its_settings_name(tmp_path: Path) -> None:
    settings = load(options={"plugins.policies": ["missing"], "data": str(tmp_path / "data")})
    with pytest.raises(Failure, match="no installed package offers 'missing'"):
        async with running(settings, lambda error: None):
            pass
    assert not (tmp_path / "data").exists()


def test_a_policy_that_is_named_may_be_the_one_of_all_topics(tmp_path: Path) -> None:
    file = tmp_path / "lasthop.toml"
    file.write_text('[plugins]\npolicies = ["sparing"]\n\n[topics]\npolicy = "sparing"\n')
    assert load(file).topics.policy == "sparing"
    with pytest.raises(InvalidRequest, match=r"topics\.policy: unknown policy 'sparing'"):
        load(file, options={"plugins.policies": []})


def test_a_variable_names_several_with_commas_between() -> None:
    settings = load(environment={"LASTHOP_PLUGINS_POLICIES": "one, Two"})
    assert settings.plugins.policies == ("one", "Two")
    assert load(environment={"LASTHOP_PLUGINS_POLICIES": ""}).plugins == Settings().plugins


def test_a_list_is_a_list() -> None:
    with pytest.raises(InvalidRequest, match=r"plugins.policies: expected a list, such as"):
        load(options={"plugins.policies": "sparing"})


def test_the_page_about_it_is_true(offer: Callable[..., None], tmp_path: Path) -> None:
    source, project, settings, carrier = (
        b.text for b in blocks(PAGE) if b.language in ("python", "toml")
    )
    offer("modem", carrier, CARRIERS, pager="modem_plugin")
    assert set(load_carriers(["pager"])) == {"pager"}
    assert Route("pager", "+15551999").endpoint() == ("+15551999", 0)
    ((name, place),) = tomllib.loads(project)["project"]["entry-points"]["lasthop.policies"].items()
    offer("page", source, **{name: f"page_plugin:{place.partition(':')[2]}"})
    file = tmp_path / "lasthop.toml"
    file.write_text(settings)
    chosen = load(file)
    load_policies(chosen.plugins.policies)
    choice = chosen.topics.choice()
    assert choice is not None
    policy = policy_of(choice, most=None)
    assert (policy.room(on_device=0), policy.room(on_device=1)) == (1, 0)


# Carriers.


async def test_a_carrier_that_is_named_takes_pushes_to_its_own_addresses(
    offer: Callable[..., None], tmp_path: Path
) -> None:
    offer("pigeon", PIGEONS, CARRIERS, pigeon="pigeon_plugin")
    ports = {"http.listen": "127.0.0.1:0", "tcp.listen": "127.0.0.1:0"}
    settings = load(
        options={"plugins.carriers": ["pigeon"], "data": str(tmp_path / "data"), **ports}
    )
    async with (
        running(settings, lambda error: None) as places,
        httpx.AsyncClient(base_url=places.http) as http,
    ):
        route = {"variant": "pigeon", "address": "the old tower"}
        made = await http.post("/v1/devices", json={"name": "pigeon", "routes": [route]})
        assert made.status_code == 201, made.text
        route["variant"] = "owl"
        refused = await http.post("/v1/devices", json={"name": "owl", "routes": [route]})
        assert refused.status_code == 400
        known = "wsp, wsp-session, http, sms, pigeon"
        assert f"unknown variant 'owl': choose from {known}" in refused.json()["error"]["detail"]
        said = await http.post("/v1/messages", json={"device": "pigeon", "body": "coo"})
        told = await http.get(f"/v1/messages/{said.json()['id']}?wait=delivered&timeout=5")
        assert told.json()["satisfied"], told.text
    assert import_module("pigeon_plugin").carried == [("the old tower", b"coo")]


@pytest.mark.parametrize(
    "package, source, name, why",
    [
        ("empty", "", "pigeon", "'pigeon' lacks a `variation` or an `open`"),
        (
            "half",
            PIGEONS.replace("def open", "def other"),
            "pigeon",
            "'pigeon' lacks a `variation`",
        ),
        ("wsp", PIGEONS, "wsp", "there is already a carrier 'wsp'"),
        ("bad", "import nowhere", "pigeon", "'pigeon' cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_carrier_that_cannot_be_had_is_refused_in_one_line(
    offer: Callable[..., None], package: str, source: str, name: str, why: str
) -> None:
    offer(package, source, CARRIERS, **{name: f"{package}_plugin"})
    with pytest.raises(Failure) as caught:
        load_carriers([name])
    assert str(caught.value).startswith(f"plugins.carriers: {why}")
    with pytest.raises(Failure, match="no installed package offers 'owl' in the entry point"):
        load_carriers(["owl"])
