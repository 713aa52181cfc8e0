"""Every command against a gateway that runs, and on a data directory where none does."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from typer.main import get_command

from lasthop.access.rest import RestSettings
from lasthop.access.rest.answers import encode
from lasthop.access.rest.operations import EXPLAIN, OPERATIONS
from lasthop.access.rest.operations.command import Command
from lasthop.access.rest.problems import problem_of
from lasthop.core.apps.credentials import Scope
from lasthop.errors import OutcomeOpen
from lasthop.runtime.cli import COMMANDS, RESOURCES, app
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import GatewayProcess

HEAVY = ("lasthop.core.gateway", "lasthop.runtime.cli.reference_device", "starlette", "asyncio")


def every_command() -> list[list[str]]:
    """All commands, with those of groups."""
    root: Any = get_command(app)
    paths: list[list[str]] = []
    for name in COMMANDS:
        command = root.get_command(None, name)
        listed = command.list_commands(None) if hasattr(command, "list_commands") else ()
        paths += [[name, each] for each in listed] or [[name]]
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


def test_every_operation_has_a_command_or_says_why_not() -> None:
    commands = {" ".join(path) for path in every_command()}
    for operation in (*OPERATIONS, EXPLAIN):
        if isinstance(operation.command, Command):
            assert operation.command.words in commands
        else:
            assert operation.command.endswith("."), f"{operation.method} {operation.path}"
    made = [each.command.words for each in OPERATIONS if isinstance(each.command, Command)]
    assert len(made) == len(set(made)), "two operations have the same command"
    administered = [each for each in OPERATIONS if each.resolved().scope != Scope.PUBLISH]
    assert all(isinstance(each.command, Command) for each in administered)


@pytest.mark.parametrize("path", every_command(), ids=" ".join)
def test_help_is_made_of_sentences_that_name_what_they_are_about(path: list[str]) -> None:
    command: Any = get_command(app)
    for word in path:
        command = command.get_command(None, word)
    if path[0] not in RESOURCES or path[1] in RESOURCES[path[0]]:
        return
    sentence = command.help.partition("\n")[0]
    assert sentence.endswith(".")
    assert len(sentence.split()) >= 3
    for option in command.params:
        said = option.help or "Shown by the parser."
        assert said[0].isupper(), f"{path} {option.name}: {said}"
        assert said.rstrip().endswith("."), f"{path} {option.name}: {said}"
        assert len(said) > 5, f"{path} {option.name}: {said}"


def test_commands_for_a_running_gateway_load_none_themselves() -> None:
    ask = (
        "import sys\nfrom lasthop.runtime.cli import main\n"
        "try: main(['device', 'list', '--url', 'http://127.0.0.1:1'])\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert "no gateway at" in done.stderr
    assert done.stdout == "[]\n"


def test_the_version_can_be_asked_for(lasthop: Lasthop) -> None:
    assert lasthop("--version").out.startswith("lasthop ")


@pytest.mark.parametrize(
    "arguments,message",
    [
        (["pussh"], "No such command 'pussh'"),
        (["push", "--frobnicate"], "No such option: --frobnicate"),
        (["push", "news"], "a target and a text are needed"),
        (["push", "news", "x", "--url", "ftp://x"], "--url must be like"),
        (["push", "news", "x", "--url", "http://127.0.0.1:1"], "no gateway at http://127.0.0.1:1"),
        (["push", "--batch", "/nowhere"], "No such file"),
        (["device", "register", "x", "--route", "wsp"], "--route takes VARIANT=ADDRESS, not 'wsp'"),
        (["device", "change", "x"], "nothing to change: give one of --user, --zone, --capability,"),
        (["device", "change", "x", "--capability", "y"], "--capability takes NAME=VALUE, not 'y'"),
        (["device", "subscribe", "x", "y", "--quiet", "{"], "--quiet takes JSON: "),
        (["device", "prefer", "x", "/nowhere"], "cannot read /nowhere: No such file"),
        (["behaviour", "set", "--max-size", "8"], "--max-size: expected a size, such as"),
        (["group", "show", "x", "--url", "http://127.0.0.1:1"], "no gateway at http://127.0.0.1:1"),
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
    *story, waiting = online.out.splitlines()
    assert story == offline.out.splitlines()
    assert waiting.endswith("waits: the device is not in contact")
    assert "accepted: no contact (from publisher:anonymous, size 11 bytes" in online.out
    lines = lasthop("explain", message, "teller", "--url", up.http, "--json").out.splitlines()
    assert [json.loads(line)["what"] for line in lines] == ["accepted", "waits"]
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
    assert "the gateway still has it" in result.error


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


@pytest.mark.parametrize("online", [True, False], ids=["gateway", "directory"])
def test_a_device_is_changed_and_shown_in_all_it_has(
    lasthop: Lasthop, up: GatewayProcess, tmp_path: Path, online: bool
) -> None:
    where = ["--url", up.http] if online else ["--data", str(tmp_path / "data")]
    where += ["--app", "details"]
    first = lasthop("device", "register", "phone", "--address", "PLMN:+1555", *where).out
    change = ["device", "change", "phone", "--zone", "Europe/Berlin", "--capability", "Model=A1"]
    assert lasthop(*change, *where).lines == ["changed zone, capabilities of phone"]
    emptied = lasthop("device", "change", "phone", "--no-addresses", *where, "--json").json
    assert "addresses" not in emptied
    assert emptied["capabilities"] == {"Model": "A1"}
    shown = lasthop("device", "show", "phone", *where).lines
    assert "zone: Europe/Berlin" in shown
    assert "in_contact: no" in shown
    assert 'capabilities: {"Model":"A1"}' in shown
    assert lasthop("device", "token", "phone", *where).out not in ("", first)
    preferences = tmp_path / "preferences.json"
    preferences.write_text('{"limits": [{"amount": 9, "measure": "messages", "period": "day"}]}')
    said = lasthop("device", "prefer", "phone", str(preferences), *where).lines
    assert said == [f"phone has the preferences of {preferences}"]
    assert '"amount":9' in lasthop("device", "preferences", "phone", *where).out
    preferences.write_text('{"limits": 9}')
    refused = lasthop("device", "prefer", "phone", str(preferences), *where, fails=True)
    assert refused.error == "lasthop: limits: Expected `array`, got `int`"


@pytest.mark.parametrize("online", [True, False], ids=["gateway", "directory"])
def test_subscriptions_of_a_device_are_administered(
    lasthop: Lasthop, up: GatewayProcess, tmp_path: Path, online: bool
) -> None:
    where = ["--url", up.http] if online else ["--data", str(tmp_path / "data")]
    where += ["--app", "subscriptions"]
    lasthop("device", "register", "phone", *where)
    subscribe = ["device", "subscribe", "phone", "news"]
    assert lasthop(*subscribe, *where).lines == ["phone subscribes to news"]
    (plain,) = lasthop("device", "subscriptions", "phone", *where, "--json").json
    assert plain == {"topic": "news"}, "no terms: everything is sent as it comes"
    quiet = '{"start": "22:00", "end": "07:00"}'
    lasthop(*subscribe, "--max", "8", "--mode", "on-line", "--quiet", quiet, *where)
    (terms,) = lasthop("device", "subscriptions", "phone", *where, "--json").json
    assert terms["terms"] == {"mode": "on-line", "max": 8, "quiet": json.loads(quiet)}
    assert "news" in lasthop("device", "subscriptions", "phone", *where).lines[1]
    ended = lasthop("device", "unsubscribe", "phone", "news", *where)
    assert ended.lines == ["phone does not subscribe to news"]
    rules = tmp_path / "rules.json"
    rules.write_text('{"rules": []}')
    said = lasthop("device", "set-rules", "phone", str(rules), *where).lines
    assert said == [f"the subscriptions of phone follow the rules in {rules}"]
    assert lasthop("device", "rules", "phone", *where, "--json").json == {"rules": []}


def test_what_is_used_of_a_devices_limits_is_shown(
    lasthop: Lasthop, up: GatewayProcess, tmp_path: Path
) -> None:
    where = ["--url", up.http, "--app", "budgets"]
    lasthop("device", "register", "phone", *where)
    preferences = tmp_path / "preferences.json"
    preferences.write_text('{"limits": [{"amount": 9, "measure": "messages", "period": "day"}]}')
    lasthop("device", "prefer", "phone", str(preferences), *where)
    lines = lasthop("device", "budgets", "phone", *where).lines
    assert lines[0] == "0 deliveries wait for a link, a limit or a better time"
    assert lines[2].startswith("9 messages per day")


def test_a_long_list_comes_in_pages_and_is_shown_whole(
    lasthop: Lasthop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = partial(RestSettings, max_listed=2)
    monkeypatch.setattr("lasthop.runtime.cli.at_store.RestSettings", few)
    where = ["--data", str(tmp_path / "data")]
    names = [f"phone-{number}" for number in range(5)]
    for name in names:
        lasthop("device", "register", name, *where)
    listed = lasthop("device", "list", *where, "--json").lines
    assert [json.loads(line)["name"] for line in listed] == names


def test_groups_and_queues_are_administered_in_a_directory(
    lasthop: Lasthop, tmp_path: Path
) -> None:
    where = ["--data", str(tmp_path / "data")]
    for name in ("phone", "watch"):
        lasthop("device", "register", name, *where)
    assert lasthop("group", "make", "crew", "--closed", *where).lines == ["crew has 0 members"]
    added = lasthop("group", "add", "crew", "phone", "watch", *where).lines
    assert added == ["phone is in crew", "watch is in crew"]
    assert lasthop("group", "show", "crew", *where).lines == ["phone", "watch"]
    assert "closed" in lasthop("group", "list", *where).lines[1]
    lasthop("queue", "make", "jobs", "--patience", "5", *where)
    lasthop("queue", "add", "jobs", "phone", *where)
    shown = lasthop("queue", "show", "jobs", *where)
    assert shown.lines[0] == "0 messages wait"
    assert "away" in shown.lines[2]
    with GatewayProcess(tmp_path / "data") as up:
        kept = lasthop("queue", "show", "jobs", "--url", up.http, "--json").json
        assert (kept["patience"], kept["consumers"]) == (5.0, 1)


def test_the_behaviour_of_an_app_is_set_and_taken_back(
    lasthop: Lasthop, up: GatewayProcess
) -> None:
    where = ["--url", up.http, "--app", "behaving"]
    assert lasthop("behaviour", "show", *where).lines == ["as for any app"]
    chosen = ["--max-size", "8MiB", "--type", "image/*", "--type", "text/plain", "--pull"]
    assert lasthop("behaviour", "set", *chosen, *where).lines == [
        "pull: yes",
        "content_types: image/* text/plain",
        "max_size: 8388608",
    ]
    assert lasthop("behaviour", "clear", *where, "--json").json == {}


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["credential", "add", "x", "--scope", "everything"], 2),
        (["device", "register", "a b"], 2),
        (["address", "set", "staff", "app:"], 1),
        (["device", "remove", "nobody"], 1),
        (["device", "remove"], 2),
    ],
)
def test_exit_codes_tell_a_mistake_in_the_command_line_from_a_refusal(
    lasthop: Lasthop, tmp_path: Path, arguments: list[str], code: int
) -> None:
    assert lasthop(*arguments, "--data", str(tmp_path / "data"), fails=True).code == code


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
