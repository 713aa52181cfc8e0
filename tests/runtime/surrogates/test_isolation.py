"""Whatever a surrogate does, its gateway and the other apps go on.

About `runtime/surrogates/`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import Lasthop
from tests.runtime.processes import GatewayProcess, eventually

HERE = Path(__file__).parent

APPS = {
    "good": "Good",
    "loop": "Loop",
    "sleeper": "Sleeper",
    "hog": "Hog",
    "quitter": "Quitter",
    "forker": "Forker",
    "chatterbox": "Chatterbox",
    "liar": "Liar",
    "greedy": "Greedy",
    "unborn": "Unborn",
    "missing": "Nobody",
}


def section(app: str, place: str, **settings: object) -> str:
    """A part of the configuration."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    head = [f"[surrogates.{app}]", f'class = "{place}"']
    return "\n".join([*head, *lines, "", ""])


class Served(GatewayProcess):
    """A gateway whose apps have surrogates, and a device in each of them."""

    def send(self, app: str, body: str, device: str = "phone") -> str:
        """Publish; returns the id."""
        return self.push({"device": device, "body": body}, **{"X-App": app})

    def reply(self, app: str, message: str, seconds: int = 60) -> str:
        """The answer to a message, which must come."""
        path = f"/v1/messages/{message}/reply?timeout={seconds}"
        status, body = self.request("GET", path, None, **{"X-App": app})
        assert status == 200, body
        return body.decode()

    def told(self, app: str, message: str, device: str = "phone") -> list[str]:
        """What became of a message, and why; not what it waits for now."""
        path = f"/v1/messages/{message}/explain?device={device}"
        status, body = self.request("GET", path, None, **{"X-App": app})
        assert status == 200, body
        lines = [line for line in json.loads(body) if line["what"] != "waits"]
        return [f"{line['what']}: {line['why']}" for line in lines]

    def until_told(self, app: str, message: str, why: str) -> list[str]:
        """Until the story of a message says this."""
        eventually(lambda: any(why in line for line in self.told(app, message)), why)
        return self.told(app, message)

    def surrogate(self, app: str) -> Any:
        return self.get_json(f"/v1/surrogates/{app}")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    data: Path = tmp_path_factory.mktemp("served") / "data"
    config = data.with_name("config.toml")
    settings: dict[str, Any] = {"path": str(HERE), "attempts": 2, "time": "4s"}
    quick: dict[str, Any] = {"sleeper": {"time": "300ms"}, "liar": {"time": "2s"}}
    quick |= {"hog": {"memory": "256MiB"}, "greedy": {"state": "1MiB"}, "loop": {"attempts": 1}}
    sections = [
        section(app, f"villains:{name}", **(settings | quick.get(app, {})))
        for app, name in APPS.items()
    ]
    config.write_text("".join(sections))
    with Served(data, "--config", str(config)) as process:
        for app in APPS:
            status, _ = process.request(
                "POST", "/v1/devices", b'{"name": "phone"}', **{"X-App": app}
            )
            assert status == 201
        yield process


def test_a_good_one_answers_and_changes(served: Served) -> None:
    first = served.send("good", "hello")
    assert "consulted: changed by its surrogate: title" in served.until_told(
        "good", first, "consulted"
    )
    asked = served.send("good", "count?")
    assert served.reply("good", asked) == "1"
    assert served.told("good", asked)[-1] == "suppressed: answered by its surrogate"


def test_an_endless_loop_disturbs_nobody(served: Served) -> None:
    stuck = served.send("loop", "hello")
    asked = served.send("good", "count?")
    served.reply("good", asked)
    assert served.told("loop", stuck) == ["accepted: waits for its surrogate"]
    told = served.until_told("loop", stuck, "relayed as it is")
    assert told[-1].endswith("the worker ended: it took longer than 4 s")


def test_who_waits_for_ever_is_replaced(served: Served) -> None:
    asked = served.send("sleeper", "hello")
    told = served.until_told("sleeper", asked, "relayed as it is")
    assert "its surrogate failed (1 of 2): the worker ended: it took longer than 0.3 s" in told[1]
    assert served.surrogate("sleeper")["restarts"] >= 2


def test_a_hog_gets_no_more_than_its_share(served: Served) -> None:
    asked = served.send("hog", "hello")
    told = served.until_told("hog", asked, "relayed as it is")
    assert "MemoryError at villains.py" in told[-1]


@pytest.mark.parametrize(
    "way, why",
    [
        ("exit", "SystemExit at villains.py"),
        ("_exit", "the worker ended: ended with code 7"),
        ("abort", "the worker ended: killed by signal 6"),
        ("interrupt", "KeyboardInterrupt at villains.py"),
    ],
)
def test_who_ends_its_process_ends_nothing_else(served: Served, way: str, why: str) -> None:
    asked = served.send("quitter", way)
    told = served.until_told("quitter", asked, "relayed as it is")
    assert why in told[-1]
    after = served.send("quitter", "hello")
    assert served.until_told("quitter", after, "consulted")[-1].endswith("relayed by its surrogate")


def test_forks_do_not_speak_for_the_worker_and_do_not_outlive_it(served: Served) -> None:
    for _ in range(3):
        asked = served.send("forker", "twin")
        told = served.until_told("forker", asked, "consulted")
        assert told[-1] == "consulted: relayed by its surrogate"
    child = int(served.reply("forker", served.send("forker", "child")))
    assert alive(child)
    os.kill(served.surrogate("forker")["pid"], 9)
    eventually(lambda: not alive(child), "the child is gone with its worker")


def test_who_prints_too_much_is_cut_short(served: Served) -> None:
    asked = served.send("chatterbox", "hello")
    assert served.reply("chatterbox", asked) == "said"
    said = served.errors.read_text()
    assert 0 < said.count('"event": "surrogate says"') < 200
    assert "surrogate prints too much; lines dropped" in said


def test_a_liar_is_not_believed(served: Served) -> None:
    asked = served.send("liar", "hello")
    told = served.until_told("liar", asked, "relayed as it is")
    assert "it broke the protocol" in told[-1]


def test_greed_is_refused_with_a_reason(served: Served) -> None:
    asked = served.send("greedy", "state")
    told = served.until_told("greedy", asked, "relayed as it is")
    assert "StateTooLarge at state.py" in told[-1]
    asked = served.send("greedy", "answer")
    told = served.until_told("greedy", asked, "relayed as it is")
    assert "body too large (size=2097152, limit=1048576)" in told[-1]
    assert served.surrogate("greedy")["state_bytes"] == 0


@pytest.mark.parametrize(
    "app, why",
    [
        ("missing", "villains has no Nobody"),
        ("unborn", "RuntimeError: not today"),
    ],
)
def test_a_class_that_cannot_be_loaded_lets_messages_through(
    served: Served, lasthop: Lasthop, app: str, why: str
) -> None:
    asked = served.send(app, "hello")
    told = served.until_told(app, asked, "relayed as it is")
    assert told[-1].endswith(f"its surrogate failed: it cannot be loaded: {why}")
    url = ["--url", served.http]
    failed = lasthop("surrogate", "status", app, *url, fails=True)
    assert failed.error == f"lasthop: the surrogate of {app} cannot be loaded: {why}"
    failed = lasthop("surrogate", "reload", app, *url, fails=True)
    assert failed.error == f"lasthop: the surrogate of {app} cannot be loaded: {why}"


def test_all_of_them_are_listed(served: Served, lasthop: Lasthop) -> None:
    listed = lasthop("surrogate", "list", "--url", served.http, "--json").json
    assert [one["app"] for one in listed] == sorted(APPS)
    shown = lasthop("surrogate", "list", "--url", served.http).lines
    assert shown[0].split() == ["app", "class", "state", "waiting"]
    assert ["good", "villains:Good", "ready", "0"] in [line.split() for line in shown]


def test_one_is_shown(served: Served, lasthop: Lasthop) -> None:
    shown = lasthop("surrogate", "status", "good", "--url", served.http).out
    assert "villains:Good" in shown
    assert lasthop("surrogate", "status", "nobody", "--url", served.http, fails=True).error == (
        "lasthop: this app has no surrogate (app='nobody')"
    )


def test_after_all_that_the_gateway_is_well(served: Served) -> None:
    assert served.request("GET", "/ready")[0] == 200
    served.reply("good", served.send("good", "count?"))
    metrics = served.request("GET", "/metrics")[1].decode()
    assert 'lasthop_surrogate_messages_total{app="good",outcome="answered"}' in metrics
    assert "lasthop_surrogate_waiting " in metrics


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not buried does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
