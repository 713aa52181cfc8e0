"""Every command against a gateway that runs, and on a data directory where none does."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from typer.main import get_command

from lasthop.access.rest.answers import encode
from lasthop.access.rest.problems import problem_of
from lasthop.errors import OutcomeOpen
from lasthop.runtime.cli import COMMANDS
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import GatewayProcess

LOADED = (
    "print([name for name in sys.modules if name in ('lasthop.access', 'lasthop.core.gateway')])"
)


def every_command() -> list[list[str]]:
    """All commands, with those of groups."""
    paths: list[list[str]] = []
    for name in COMMANDS:
        command: Any = get_command(import_module(f"lasthop.runtime.cli.{name}").commands)
        paths += [[name, each] for each in getattr(command, "commands", ())] or [[name]]
    return paths


@pytest.mark.parametrize("path", every_command(), ids=" ".join)
def test_every_command_has_help_with_an_example_and_an_option_for_machines(
    lasthop: Lasthop, path: list[str]
) -> None:
    said = lasthop(*path, "--help").out
    assert f"  lasthop {' '.join(path)}" in said.partition("Examples:")[2]
    assert "--json" in said


def test_help_lists_every_command_and_loads_none_of_them(lasthop: Lasthop) -> None:
    said = lasthop("--help").out
    for name, about in COMMANDS.items():
        assert name in said
        assert about in said


def test_commands_for_a_running_gateway_load_none_themselves() -> None:
    modules = "device, credential, address"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nfrom lasthop.runtime.cli import {modules}\n{LOADED}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_the_version_can_be_asked_for(lasthop: Lasthop) -> None:
    assert lasthop("--version").out.startswith("lasthop ")


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["pussh"], "No such command 'pussh'"),
        (["push", "--frobnicate"], "No such option: --frobnicate"),
        (["push", "news"], "say to whom and what"),
        (["push", "news", "x", "--url", "ftp://x"], "--url must be like"),
        (["push", "news", "x", "--url", "http://127.0.0.1:1"], "no gateway at http://127.0.0.1:1"),
        (["push", "--batch", "/nowhere"], "No such file"),
        (["explain", "xyz", "phone"], "'xyz' is not a message id"),
        (["explain", "0" * 16, "phone", "--data", "/nowhere"], "there is no store"),
        (["status", "--data", "/nowhere"], "no data directory /nowhere"),
        (["backup", "/tmp/x", "--data", "/nowhere"], "there is no store"),
        (["restore", "/nowhere", "--data", "/tmp/x"], "there is no such backup"),
        (["log", "check", "--data", "/nowhere"], "there is no store"),
        (["config", "--config", "/nowhere"], "cannot read /nowhere"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    lasthop: Lasthop, arguments: list[str], message: str
) -> None:
    assert message in lasthop(*arguments, fails=True).error


def test_a_push_is_accepted_and_its_story_can_be_told(lasthop: Lasthop, up: GatewayProcess) -> None:
    lasthop("device", "register", "teller", "--url", up.http)
    message = lasthop("push", "device:teller", "hello", "world", "--url", up.http).out.strip()
    online = lasthop("explain", message, "teller", "--url", up.http)
    offline = lasthop("explain", message, "teller", "--data", str(up.data))
    assert online.out == offline.out
    assert "accepted: no contact (from publisher:anonymous, size 11 bytes" in online.out
    told = lasthop("explain", message, "teller", "--url", up.http, "--json").json
    assert told["what"] == "accepted"
    assert "no such device" in lasthop("explain", message, "x", "--url", up.http, fails=True).error


def test_a_push_may_carry_every_option(lasthop: Lasthop, up: GatewayProcess) -> None:
    lasthop("device", "register", "rich", "--url", up.http)
    options = [
        "--title",
        "T",
        "--rank",
        "2.5",
        "--priority",
        "7",
        "--ttl",
        "1h",
        "--delay-tolerance",
        "5m",
        "--replace-key",
        "k",
        "--once",
        "o-1",
    ]
    arguments = ["push", "device:rich", "text", *options, "--url", up.http, "--json"]
    first = lasthop(*arguments).json
    assert lasthop(*arguments).json == {"id": first["id"], "repeated": True}
    told = lasthop("explain", first["id"], "rich", "--url", up.http).out
    assert "priority 7, rank 2.5, not after" in told


def test_a_push_reads_standard_input(
    lasthop: Lasthop, up: GatewayProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    lasthop("device", "register", "stdin", "--url", up.http)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\xff" * 300)))
    message = lasthop("push", "device:stdin", "-", "--url", up.http).out.strip()
    assert "size 300 bytes" in lasthop("explain", message, "stdin", "--url", up.http).out


def test_a_push_that_nobody_takes_in_time_fails_and_stays_accepted(
    lasthop: Lasthop, up: GatewayProcess
) -> None:
    lasthop("device", "register", "away", "--url", up.http)
    result = lasthop("push", "device:away", "x", "--wait", "0.05", "--url", up.http, fails=True)
    assert "1 pending" in result.out
    assert "it stays accepted" in result.error


def test_a_refusal_is_the_gateways_own_words(lasthop: Lasthop, up: GatewayProcess) -> None:
    said = lasthop("push", "device:nobody", "x", "--url", up.http, fails=True).error
    assert said == "lasthop: no such device (app='default', device='nobody')"


def test_a_batch_is_pushed_in_order(lasthop: Lasthop, up: GatewayProcess, tmp_path: Path) -> None:
    lasthop("device", "register", "batch", "--url", up.http)
    file = tmp_path / "messages.ndjson"
    lines = [json.dumps({"device": "batch", "body": f"{n}"}) for n in range(2500)]
    file.write_text("\n".join(lines))
    said = lasthop("push", "--batch", str(file), "--url", up.http, "--json")
    ids = [each for line in said.lines for each in json.loads(line)["ids"]]
    assert len(said.lines) == 5
    assert len(ids) == 2500
    assert ids == sorted(ids)
    assert "2500 messages accepted" in lasthop("push", "--batch", str(file), "--url", up.http).out


def test_a_bad_line_in_a_batch_is_named(
    lasthop: Lasthop, up: GatewayProcess, tmp_path: Path
) -> None:
    file = tmp_path / "messages.ndjson"
    file.write_text('{"topic": "news", "body": "x"}\n{"topic": "news", "priority": 11}\n')
    said = lasthop("push", "--batch", str(file), "--url", up.http, fails=True).error
    assert "priority" in said


class Scripted(BaseHTTPRequestHandler):
    """A gateway that has room for one request, and then leaves open what becomes of the next."""

    requests: ClassVar[list[str | None]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.requests.append(self.headers["idempotency-key"])
        if len(self.requests) == 1:
            status, answer = 202, b'{"ids": ["1", "2"]}'
        else:
            error = OutcomeOpen(
                "no room; the outcome is open",
                retry_after=1,
                ids=["3", "4"],
                repeatable="idempotency-key" in self.headers,
            )
            status, answer = error.http_status, encode(problem_of(error))
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args: object) -> None:
        """Nobody is to see it."""


@pytest.fixture
def scripted() -> Iterator[str]:
    Scripted.requests.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Scripted) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_push_whose_outcome_is_open_fails_once_and_says_how_to_ask(
    lasthop: Lasthop, scripted: str
) -> None:
    Scripted.requests.append("before")
    said = lasthop("push", "news", "x", "--url", scripted, fails=True).error
    assert said == (
        "lasthop: no room; the outcome is open: ask before you repeat it;"
        " GET /v1/messages/3 says 404 if it was not accepted"
    )
    said = lasthop("push", "news", "x", "--once", "k", "--url", scripted, fails=True).error
    assert "repeat it with the same Idempotency-Key, which cannot double it" in said
    assert Scripted.requests == ["before", None, "k"]


def test_a_batch_that_breaks_off_says_how_much_of_it_is_accepted(
    lasthop: Lasthop, scripted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lasthop.runtime.cli.push.BATCH_LINES", 2)
    file = tmp_path / "messages.ndjson"
    file.write_text('{"topic": "news"}\n' * 4)
    said = lasthop("push", "--batch", str(file), "--url", scripted, fails=True).error
    assert said.startswith("lasthop: the first 2 messages are accepted, then: no room; the outcome")


@pytest.mark.parametrize("online", [True, False], ids=["gateway", "directory"])
def test_devices_are_administered(
    lasthop: Lasthop, up: GatewayProcess, tmp_path: Path, online: bool
) -> None:
    where = ["--url", up.http] if online else ["--data", str(tmp_path / "data")]
    where += ["--app", "devices"]
    register = ["device", "register", "phone", "--user", "alice", "--topic", "news"]
    made = lasthop(*register, *where, "--json").json
    assert len(made["token"]) > 40
    assert "a device of this name exists" in lasthop(*register, *where, fails=True).error
    listed = lasthop("device", "list", *where, "--json").json
    assert (listed["name"], listed["user"]) == ("phone", "alice")
    assert listed["subscriptions"] == ["news"]
    assert "token" not in listed
    assert "phone" in lasthop("device", "list", *where).out
    lasthop("device", "remove", "phone", "--erase", *where)
    assert lasthop("device", "list", *where, "--json").out == ""
    assert "no such device" in lasthop("device", "remove", "phone", *where, fails=True).error


@pytest.mark.parametrize("online", [True, False], ids=["gateway", "directory"])
def test_credentials_are_administered(
    lasthop: Lasthop, up: GatewayProcess, tmp_path: Path, online: bool
) -> None:
    where = ["--url", up.http] if online else ["--data", str(tmp_path / "data")]
    where += ["--app", "credentials"]
    token = lasthop("credential", "add", "shop", "--scope", "publish", *where).out.strip()
    assert len(token) > 40
    listed = lasthop("credential", "list", *where, "--json").json
    assert (listed["name"], listed["scopes"]) == ("shop", ["publish"])
    assert token not in lasthop("credential", "list", *where).out
    assert lasthop("credential", "revoke", "shop", *where, "--json").json == {"revoked": 1}
    assert lasthop("credential", "list", *where, "--json").json["revoked"] is True
    add = ["credential", "add", "shop", "--scope", "everything"]
    assert "scope" in lasthop(*add, *where, fails=True).error


def test_a_credential_made_offline_opens_the_door(lasthop: Lasthop, tmp_path: Path) -> None:
    data = tmp_path / "data"
    add = ["credential", "add", "root", "--scope", "admin", "--data", str(data)]
    token = lasthop(*add).out.strip()
    with GatewayProcess(data, http="0.0.0.0:0") as up:
        url = f"http://127.0.0.1:{up.http.rpartition(':')[2]}"
        assert "credential is needed" in lasthop("push", "a", "b", "--url", url, fails=True).error
        assert lasthop("push", "news", "hello", "--url", url, "--token", token).out
        assert "use --url instead" in lasthop(*add, fails=True).error


def test_the_log_can_be_followed_and_checked(lasthop: Lasthop, up: GatewayProcess) -> None:
    lasthop("device", "register", "logged", "--url", up.http)
    message = lasthop("push", "device:logged", "hello", "--url", up.http).out.strip()
    data = ["--data", str(up.data)]
    tail = lasthop("log", "tail", *data, "-n", "100000", "--device", "logged", "--json")
    assert [json.loads(line)["kind"] for line in tail.lines] == ["registered", "accepted"]
    told = lasthop("log", "tail", *data, "-n", "100000", "--message", message)
    assert "accepted logged" in told.out
    assert "the log is whole" in lasthop("log", "check", *data).out
    assert lasthop("log", "check", *data, "--json").json["good"] is True


def test_a_damaged_log_is_found_out(lasthop: Lasthop, tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "data") as up:
        lasthop("device", "register", "phone", "--url", up.http)
        lasthop("push", "device:phone", "hello", "--url", up.http)
        up.terminate()
    (segment,) = (tmp_path / "data" / "log").glob("date=*/*.jsonl")
    lines = segment.read_text().splitlines(keepends=True)
    segment.write_text("".join(line for line in lines if "registered" not in line))
    checked = lasthop("log", "check", "--data", str(tmp_path / "data"), fails=True)
    assert "problems" in checked.out


def test_a_status_tells_of_the_gateway_and_of_its_store(
    lasthop: Lasthop, up: GatewayProcess
) -> None:
    assert lasthop("status", "--url", up.http, "--json").json["ready"] is True
    found = lasthop("status", "--data", str(up.data), "--json").json
    assert found["running"] is True
    assert found["pid"] == up.pid
    assert found["registered_devices"] >= 0
    assert "ready" in lasthop("status", "--url", up.http).out


def test_a_backup_becomes_another_gateway(
    lasthop: Lasthop, up: GatewayProcess, tmp_path: Path
) -> None:
    lasthop("device", "register", "saved", "--url", up.http)
    message = lasthop("push", "device:saved", "hello", "--url", up.http).out.strip()
    backup = tmp_path / "backup.db"
    assert lasthop("backup", str(backup), "--data", str(up.data), "--json").json["bytes"] > 0
    again = ["backup", str(backup), "--data", str(up.data)]
    assert "exists already" in lasthop(*again, fails=True).error
    lasthop("restore", str(backup), "--data", str(tmp_path / "data"))
    restore = ["restore", str(backup), "--data", str(tmp_path / "data")]
    assert "there is a store in this directory already" in lasthop(*restore, fails=True).error
    with GatewayProcess(tmp_path / "data") as copy:
        told = lasthop("explain", message, "saved", "--url", copy.http).out
        assert "accepted" in told


def test_the_settings_in_force_are_printed(
    lasthop: Lasthop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LASTHOP_HTTP_LISTEN", "127.0.0.1:1234")
    assert 'listen = "127.0.0.1:1234"' in lasthop("config").out
    assert lasthop("config", "--json").json["http"]["listen"] == "127.0.0.1:1234"
