from __future__ import annotations

from pathlib import Path

import pytest

from lasthop.clock import DAY
from lasthop.core.apps.behaviour import Behaviour
from lasthop.decision.policies import POLICIES, Policy
from lasthop.decision.volume.policy_choice import PolicyChoice
from lasthop.decision.volume.terms import TopicTerms
from lasthop.errors import InvalidRequest
from lasthop.runtime.settings import Settings, load, names, render, values, variable
from lasthop.store.base import Durability

EXAMPLE = Path(__file__).parents[2] / "lasthop.example.toml"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lasthop.toml"


def test_the_example_is_what_the_code_says() -> None:
    """After a change of settings: `lasthop config > lasthop.example.toml`."""
    assert EXAMPLE.read_text() == render(Settings())


def test_the_example_sets_the_defaults() -> None:
    assert load(EXAMPLE) == Settings()


def test_changed_settings_survive_being_written_and_read(file: Path) -> None:
    options = {"data": "/var/lib/lasthop", "limits.body": "2MiB", "http.listen": "[::1]:0"}
    settings = load(options=options)
    file.write_text(render(settings))
    assert load(file) == settings


def test_rules_are_read_and_written(file: Path) -> None:
    file.write_text(
        "[[rules]]\nwho = 'device:*'\nallow = 'subscribe'\non = 'topic:news.#'\n"
        "[[rules]]\nname = 'quiet'\napp = 'shop'\nwho = ['*']\ndeny = ['send', 'publish']\n"
    )
    settings = load(file, environment={"LASTHOP_NAME": "other"})
    first, second = settings.configured_rules()
    assert str(first) == "rules-1: device:* allow subscribe on topic:news.#"
    assert str(second) == "quiet: * deny send publish on #"
    assert second.app == "shop"
    file.write_text(render(settings))
    assert load(file) == settings
    assert values(settings)["rules"][1]["deny"] == ["send", "publish"]


def test_the_rules_of_the_page_about_rights_can_be_read(file: Path) -> None:
    page = (EXAMPLE.parent / "docs/how-to/rights.md").read_text()
    file.write_text(page.split("```toml\n")[1].partition("```")[0])
    assert [rule.name for rule in load(file).configured_rules()] == ["news", "home", "no-plans"]


def test_a_gateway_that_asks_for_credentials_gives_devices_least() -> None:
    assert not load().least
    assert load(options={"access.anonymous": "never"}).least
    assert not load(options={"access.anonymous": "never", "rights.devices": "open"}).least


def test_each_app_may_have_a_surrogate(file: Path) -> None:
    file.write_text("""
[surrogates.shop]
class = "package.module:Class"
path = "/srv/it"
time = "2s"
failing = "refuse"

[surrogates."other.app"]
class = "other:Class"
""")
    settings = load(file, environment={"LASTHOP_NAME": "x"})
    shop = settings.employments()["shop"]
    assert (shop.duty.launch.place, shop.duty.launch.path) == ("package.module:Class", "/srv/it")
    assert (shop.duty.seconds, shop.terms.failing) == (2.0, "refuse")
    assert settings.employments()["other.app"].terms.attempts == 3
    file.write_text(render(settings))
    assert load(file) == settings
    assert values(settings)["surrogates"]["shop"]["class"] == "package.module:Class"


def test_messages_of_each_app_may_behave_in_its_own_way(file: Path) -> None:
    file.write_text("""
[behaviours.shop]
handling = "background"
reliability = "best-effort"
pull_on = ["mno", "satellite"]
content_types = ["image/*"]
max_size = "8MiB"
fixed = ["pull"]

[behaviours."other.app"]
pull = true
""")
    settings = load(file, environment={"LASTHOP_NAME": "x"})
    shop = settings.configured()["shop"]
    assert shop == Behaviour(
        handling="background",
        reliability="best-effort",
        pull_on=("mno", "satellite"),
        content_types=("image/*",),
        max_size=8 << 20,
        fixed=("pull",),
    )
    assert settings.configured()["other.app"] == Behaviour(pull=True)
    file.write_text(render(settings))
    assert load(file) == settings
    assert values(settings)["behaviours"]["shop"]["max_size"] == "8MiB"
    assert values(settings)["behaviours"]["other.app"]["pull"] is True


def test_what_one_app_may_send_is_within_what_the_gateway_takes(file: Path) -> None:
    file.write_text('[behaviours.x]\nmax_size = "1GiB"\n[limits]\nlargest_body = "1GiB"\n')
    assert load(file).configured()["x"].max_size == 1 << 30


def test_the_example_of_a_behaviour_can_be_uncommented(file: Path) -> None:
    text = EXAMPLE.read_text()
    example = text[text.index("# [behaviours.APP]") : text.index("# A class that acts for")]
    file.write_text("\n".join(line.removeprefix("# ") for line in example.splitlines()))
    assert load(file).configured() == {"APP": Behaviour()}


def test_a_variable_overrides_the_file_and_an_option_both(file: Path) -> None:
    file.write_text('[http]\nlisten = "127.0.0.1:1"\n[tcp]\nlisten = "127.0.0.1:2"\n')
    environment = {"LASTHOP_HTTP_LISTEN": "127.0.0.1:3", "LASTHOP_TCP_LISTEN": "127.0.0.1:4"}
    options = {"tcp.listen": "127.0.0.1:5", "data": None}
    settings = load(file, environment=environment, options=options)
    assert settings.http.listen == "127.0.0.1:3"
    assert settings.tcp.listen == "127.0.0.1:5"
    assert settings.data == Settings().data


def test_a_section_may_be_given_in_part(file: Path) -> None:
    file.write_text('[retention]\nlog = "90d"\n')
    retention = load(file).retention
    assert (retention.messages, retention.keys, retention.log) == (7 * DAY, 2 * DAY, 90 * DAY)


def test_values_in_variables_have_their_types() -> None:
    environment = {"LASTHOP_LIMITS_OPEN_PER_DEVICE": "7", "LASTHOP_DURABILITY": "relaxed"}
    settings = load(environment=environment)
    assert settings.limits.open_per_device == 7
    assert settings.durability is Durability.RELAXED


@pytest.mark.parametrize(
    "text,message",
    [
        ('[http]\nlisen = "x:1"', "unknown setting http.lisen; did you mean http.listen?"),
        ('[htp]\nlisten = "x:1"', "unknown setting htp.listen; did you mean http.listen?"),
        ("body = 3", "unknown setting body; did you mean limits.body?"),
        ("frobnicate = 1", "unknown setting frobnicate"),
        ("http = 3", "http is a section: write [http]"),
        ('durability = "none"', 'durability: expected "full" or "relaxed"'),
        ('[limits]\nbody = "3MB"', "limits.body: expected a size"),
        ('[http]\nlisten = "80"', "http.listen: expected an address"),
        ('[http]\ntrusted_proxies = ["nginx"]', "expected an address or a network, such as"),
        ('[http]\ntrusted_proxies = ["10.0.0.1/8"]', "expected an address or a network, such as"),
        ('[http]\ntrusted_proxies = ["0.0.0.0/0"]', "0.0.0.0/0 is every address: nobody would"),
        ("[limits]\nopen_per_device = 0", "limits.open_per_device: Expected int >= 1"),
        ('[tls]\ncert = "a.pem"', "tls.cert and tls.key must be set together"),
        ("data =", "Invalid value"),
        ("surrogates = 3", "surrogates are sections: write [surrogates.APP]"),
        ("[surrogates]\nclass = 'a:B'", "surrogates are sections: write [surrogates.APP]"),
        ("[surrogates.x]", "surrogates.x: Object missing required field class"),
        ("[surrogates.x]\nclass = 'a'", "surrogates.x.class: expected text such as"),
        ("[surrogates.x]\nclas = 'a:B'", "surrogates.x.clas; did you mean class?"),
        ("[surrogates.x]\nclass = 'a:B'\ntime = 3", "surrogates.x.time: expected a duration"),
        ("[surrogates.x]\nclass = 'a:B'\nqueue = 0", "surrogates.x.queue: Expected int >= 1"),
        (
            "[surrogates.x]\nclass = 'a:B'\nstate = '17MiB'",
            "surrogates.x.state: must be at most 16MiB",
        ),
        (
            "[surrogates.x]\nclass = 'a:B'\nfailing = 'x'",
            'surrogates.x.failing: expected "relay" or "refuse"',
        ),
        ("[surrogates.'a b']\nclass = 'a:B'", "surrogates.a b: not the name of an app"),
        (
            '[traces]\nendpoint = "localhost:4318"',
            'traces.endpoint: expected text such as "http://localhost:4318/v1/traces"',
        ),
        ("[traces]\nendpoint = 'http://'", "traces.endpoint: expected text such as"),
        ("[traces]\nheaders = 'secret'", "traces.headers: expected text such as"),
        ("[traces]\nsample = 1.5", "traces.sample: Expected float <= 1.0"),
        ("[traces]\nsample = 'all'", "traces.sample: Expected float, got str"),
        ("[traces]\nservice = ''", "traces.service: Expected str of length >= 1"),
        ("rules = 3", "rules are sections: write [[rules]]"),
        ("[[rules]]\nallow = 'send'", "rules.1: Object missing required field who"),
        ("[[rules]]\nwho = '*'\nallow = 'shout'", 'rules.1.allow[0]: expected "publish" or'),
        ("[[rules]]\nwho = 'phone'\nallow = 'send'", "rules.1: a rule is for * (everybody)"),
        ("[[rules]]\nwho = '*'", "rules.1: a rule allows or denies something"),
        (
            "[[rules]]\nname='a'\nwho='*'\ndeny='send'\n[[rules]]\nname='a'\nwho='*'\ndeny='send'",
            "two rules have the name a",
        ),
        ("behaviours = 3", "behaviours are sections: write [behaviours.APP]"),
        ("[behaviours]\npull = true", "behaviours are sections: write [behaviours.APP]"),
        ("[behaviours.'a b']", "behaviours.a b: not the name of an app"),
        ("[behaviours.x]\nhandlin = 'silent'", "behaviours.x.handlin; did you mean handling?"),
        (
            "[behaviours.x]\nhandling = 'loud'",
            'x.handling: expected "foreground" or "notify" or "background" or "silent"',
        ),
        ("[behaviours.x]\nhandling = 3", 'x.handling: expected "foreground" or "notify" or'),
        ("[behaviours.x]\nreliability = 'x'", 'x.reliability: expected "best-effort" or "at-'),
        ("[behaviours.x]\npull = 'often'", "behaviours.x.pull: Expected bool, got str"),
        ("[behaviours.x]\npull_on = 'mno'", 'x.pull_on: expected a list, such as ["one", "two"]'),
        ("[behaviours.x]\npull_on = ['']", "x.pull_on[0]: Expected str of length >= 1"),
        (
            f"[behaviours.x]\npull_on = {['a'] * 17}",
            "behaviours.x.pull_on: Expected array of length <= 16",
        ),
        (
            "[behaviours.x]\ncontent_types = ['text/plain', 'png']",
            'x.content_types[1]: expected text such as "image/png" or "image/*"',
        ),
        ("[behaviours.x]\ncontent_types = [3]", "x.content_types[0]: Expected str, got int"),
        (
            f"[behaviours.x]\ncontent_types = {['a/b'] * 65}",
            "behaviours.x.content_types: Expected array of length <= 64",
        ),
        ("[behaviours.x]\nmax_size = 300", 'x.max_size: expected a size, such as "256MiB"'),
        ("[behaviours.x]\nmax_size = '3MB'", 'x.max_size: expected a size, such as "256MiB"'),
        (
            "[behaviours.x]\nmax_size = '1GiB'",
            "behaviours.x.max_size: must be at most limits.largest_body, which is",
        ),
        (
            "[behaviours.x]\nfixed = ['pull', 'size']",
            'behaviours.x.fixed[1]: expected "handling" or "reliability" or "pull"',
        ),
    ],
)
def test_a_mistake_is_named_in_one_line(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(InvalidRequest) as caught:
        load(file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_misspelt_variable_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"LASTHOP_HTP_LISTEN; did you mean LASTHOP_HTTP_LIS"):
        load(environment={"LASTHOP_HTP_LISTEN": "x"})


def test_variables_of_commands_and_of_kubernetes_are_not_settings() -> None:
    environment = {
        "LASTHOP_URL": "http://x",
        "LASTHOP_TOKEN": "t",
        "LASTHOP_SERVICE_HOST": "10.0.0.1",
        "LASTHOP_SERVICE_PORT_HTTP": "80",
        "LASTHOP_PORT": "tcp://10.0.0.1:80",
        "LASTHOP_PORT_80_TCP_ADDR": "10.0.0.1",
    }
    assert load(environment=environment) == Settings()


def test_a_file_that_is_not_there_is_said() -> None:
    with pytest.raises(InvalidRequest, match="cannot read /nowhere: No such file"):
        load(Path("/nowhere"))


def test_no_two_settings_share_a_variable() -> None:
    variables = [variable(name) for name in names()]
    assert len(set(variables)) == len(variables)


@pytest.mark.parametrize("listener", ["http.listen", "tcp.listen"])
def test_one_listener_beyond_this_machine_closes_the_open_house(listener: str) -> None:
    assert load().open_house
    assert not load(options={listener: "0.0.0.0:1"}).open_house


def test_the_open_house_can_be_closed_on_loopback_too() -> None:
    assert not load(options={"access.anonymous": "never"}).open_house


def test_a_policy_that_is_in_the_one_list_needs_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(POLICIES, "mine", Policy)
    assert load(options={"topics.policy": "mine"}).topics.choice() == PolicyChoice("mine")
    listed = ", ".join(f'"{name}"' for name in POLICIES)
    assert listed in " ".join(render(Settings()).replace("\n# ", " ").split())
    TopicTerms(policy="mine")


def test_a_policy_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(InvalidRequest) as caught:
        load(options={"topics.policy": "unifed"})
    known = ", ".join(POLICIES)
    assert str(caught.value) == f"topics.policy: unknown policy 'unifed'; known: {known}"
