"""A surrogate across kills and reloads: every message counts once, in order, under load.

About `runtime/surrogates/` and `core/surrogates/`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import Lasthop
from tests.runtime.processes import DeviceProcess, eventually
from tests.runtime.publishers import Publisher
from tests.runtime.surrogates.test_isolation import HERE, Served, alive, section

KILLS = int(os.environ.get("KILLS", "6"))
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))


def configured(tmp_path: Path, place: str, **settings: object) -> Served:
    """A gateway whose default app has this surrogate, and a device named phone."""
    config = tmp_path / "config.toml"
    config.write_text(section("default", place, **settings))
    served = Served(tmp_path / "data", "--config", str(config))
    token = json.loads(served.request("POST", "/v1/devices", b'{"name": "phone"}')[1])["token"]
    (tmp_path / "token").write_text(token)
    return served


def a_device(tmp_path: Path, served: Served) -> DeviceProcess:
    """It writes what it gets into a file, and remembers across restarts."""
    options = ["--token", (tmp_path / "token").read_text()]
    options += ["--inbox", str(tmp_path / "inbox.db"), "--output", str(tmp_path / "output.jsonl")]
    return DeviceProcess(served.tcp, "phone", tmp_path / "device.log", *options)


def arrived(tmp_path: Path) -> list[dict[str, Any]]:
    output = tmp_path / "output.jsonl"
    return [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []


@pytest.mark.slow
@pytest.mark.timeout(120 + 15 * KILLS)
def test_every_message_counts_once_across_kills_of_worker_and_gateway(
    tmp_path: Path, lasthop: Lasthop
) -> None:
    rng = random.Random(SEED)
    served = configured(tmp_path, "villains:Good", path=str(HERE), attempts=10)
    device = a_device(tmp_path, served)
    address = served.http.removeprefix("http://")
    publishers = [Publisher(f"p{n}", address, "phone") for n in range(2)]
    for publisher in publishers:
        publisher.start()
    try:
        for n in range(KILLS):
            time.sleep(rng.uniform(0.1, 0.8))
            worker = served.surrogate("default")["pid"]
            if n % 3 == 2:
                served.kill()
                if worker is not None:
                    eventually(lambda pid=worker: not alive(pid), "the worker is gone as well")  # type: ignore[misc]
                served = served.again()
            elif worker is not None:
                os.kill(worker, signal.SIGKILL)
        for publisher in publishers:
            publisher.stop()
            publisher.join()
        accepted = sum(len(publisher.accepted) for publisher in publishers)
        eventually(lambda: len(arrived(tmp_path)) >= accepted, f"all {accepted} are there")
        assert served.reply("default", served.send("default", "count?")) == str(accepted)
        assert served.terminate() == 0
        device.terminate()
    except BaseException as error:
        error.add_note(f"to try this again: SEED={SEED} KILLS={KILLS}")
        raise
    finally:
        for publisher in publishers:
            publisher.stop()
        device.kill()
        served.kill()
    messages = arrived(tmp_path)
    # The surrogate gave every message a number of its own, and none was given twice or left out.
    assert sorted(int(m["title"]) for m in messages) == list(range(1, accepted + 1))
    by_publisher: dict[str, list[str]] = defaultdict(list)
    for message in messages:
        by_publisher[message["body"].partition("-")[0]].append(message["body"])
    assert by_publisher == {publisher.name: publisher.accepted for publisher in publishers}
    assert "the log is whole" in lasthop("log", "check", "--data", str(tmp_path / "data")).out


VERSION = """
from lasthop.surrogate import Relay, Surrogate

class Tagging(Surrogate):
    def to_device(self, mail):
        count = self.state["count"] = self.state.get("count", 0) + 1
        return Relay(title=f"{version} {{count}}")
"""


def test_new_code_takes_over_under_traffic_and_bad_code_does_not(
    tmp_path: Path, lasthop: Lasthop
) -> None:
    module = tmp_path / "tagging.py"
    module.write_text(VERSION.format(version="one"))
    served = configured(tmp_path, "tagging:Tagging", path=str(tmp_path))
    device = a_device(tmp_path, served)
    publisher = Publisher("p", served.http.removeprefix("http://"), "phone")
    publisher.start()
    url = ["--url", served.http]
    try:
        until_tagged(tmp_path, "one")
        module.write_text("nonsense!")
        refused = lasthop("surrogate", "reload", "default", *url, fails=True)
        assert "the surrogate of default cannot be loaded: SyntaxError" in refused.error
        module.write_text(VERSION.format(version="the second"))
        shown = lasthop("surrogate", "reload", "default", *url)
        assert "was reloaded from tagging:Tagging" in shown.out
        until_tagged(tmp_path, "the second")
        module.write_text(VERSION.format(version="the third and last"))
        served.signal(signal.SIGHUP)
        until_tagged(tmp_path, "the third and last")
        publisher.stop()
        publisher.join()
        accepted = len(publisher.accepted)
        eventually(lambda: len(arrived(tmp_path)) == accepted, f"all {accepted} are there")
        assert served.terminate() == 0
    finally:
        publisher.stop()
        device.kill()
        served.kill()
    messages = arrived(tmp_path)
    assert [m["body"] for m in messages] == publisher.accepted
    # State went from one to the next: no number is missing, and none is there twice.
    assert [int(m["title"].split()[-1]) for m in messages] == list(range(1, accepted + 1))
    versions = [m["title"].rpartition(" ")[0] for m in messages]
    assert list(dict.fromkeys(versions)) == ["one", "the second", "the third and last"]
    assert versions == sorted(versions, key=list(dict.fromkeys(versions)).index)
    log = "".join(path.read_text() for path in (tmp_path / "data").rglob("*.jsonl"))
    assert log.count('"kind":"contact_started"') == 1  # The device was there all the time.


def until_tagged(tmp_path: Path, version: str) -> None:
    eventually(
        lambda: any(m["title"].startswith(version) for m in arrived(tmp_path)),
        f"messages pass {version}",
    )


def test_a_broken_surrogate_is_mended_by_a_reload(tmp_path: Path, lasthop: Lasthop) -> None:
    module = tmp_path / "tagging.py"
    module.write_text("import nothing_of_that_name")
    with configured(tmp_path, "tagging:Tagging", path=str(tmp_path)) as served:
        first = served.send("default", "hello")
        told = served.until_told("default", first, "relayed as it is")
        assert "ModuleNotFoundError: No module named 'nothing_of_that_name'" in told[-1]
        module.write_text(VERSION.format(version="one"))
        lasthop("surrogate", "reload", "default", "--url", served.http)
        second = served.send("default", "hello")
        assert served.until_told("default", second, "changed by its surrogate: title")
        assert served.surrogate("default")["state"] == "ready"
