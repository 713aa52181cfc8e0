"""`lasthop up` as a process: how it starts, says where it is, refuses, stops and comes back."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

from lasthop.runtime import greeting
from lasthop.runtime.places import Places
from tests.runtime.conftest import Lasthop
from tests.runtime.processes import (
    DEADLINE,
    ENVIRONMENT,
    LASTHOP,
    GatewayProcess,
    Process,
    eventually,
    gateway,
)


def refused(*arguments: str) -> str:
    """Run `lasthop up`, which must fail; returns what it said."""
    done = subprocess.run(
        [*LASTHOP, "up", *arguments],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode != 0
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_it_is_healthy_and_says_where_it_is(tmp_path: Path) -> None:
    with gateway(tmp_path / "data") as up:
        assert up.get_json("/health") == {"status": "ok"}
        assert up.get_json("/ready") == {"status": "ok"}
        written = json.loads((tmp_path / "data" / "ports.json").read_bytes())
        assert written == up.places
        assert written["pid"] == up.pid
        status, page = up.request("GET", "/metrics")
        assert status == 200
        assert b"lasthop_messages_accepted_total 0.0" in page
        assert b"lasthop_open_deliveries 0.0" in page
        assert up.terminate() == 0
    assert not (tmp_path / "data" / "ports.json").exists()


def test_metrics_count_what_was_accepted_and_what_was_refused(tmp_path: Path) -> None:
    with gateway(tmp_path / "data") as up:
        up.push({"topic": "news", "body": "hello"})
        assert up.request("POST", "/v1/messages", b"{")[0] == 400
        page = up.request("GET", "/metrics")[1].decode()
        assert "lasthop_messages_accepted_total 1.0" in page
        assert 'lasthop_http_errors_total{code="invalid_request"} 1.0' in page


def test_the_first_start_says_what_to_try_and_the_second_does_not(tmp_path: Path) -> None:
    arguments = ["up", "--data", str(tmp_path / "data")]
    arguments += ["--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0"]
    said: list[str] = []
    for _ in range(2):
        with Process(arguments, tmp_path / "log") as up:
            lines = [up.line().decode()]
            while "data" not in lines[-1]:
                lines.append(up.line().decode())
            up.signal(signal.SIGTERM)
            output = up._process.stdout
            assert output is not None
            said.append("".join(lines) + output.read().decode())
            assert up.wait() == 0
    assert "lasthop is ready" in said[0]
    assert "curl -d" in said[0]
    assert "lasthop device run --url tcp://127.0.0.1:" in said[0]
    assert "lasthop is ready" in said[1]
    assert "curl" not in said[1]


def test_a_port_that_is_taken_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("--data", str(tmp_path), "--http", f"127.0.0.1:{port}")
    assert f"cannot listen on 127.0.0.1:{port}: the port is in use" in said


def test_a_second_gateway_on_one_data_directory_is_refused(tmp_path: Path) -> None:
    with gateway(tmp_path / "data") as up:
        said = refused("--data", str(tmp_path / "data"))
        assert "another gateway is using this data directory" in said
        assert str(up.pid) in said


@pytest.mark.parametrize(
    "arguments,environment,message",
    [
        (["--http", "8080"], {}, "http.listen: expected an address"),
        (["--config", "/nowhere.toml"], {}, "cannot read /nowhere.toml"),
        ([], {"LASTHOP_HTP_LISTEN": "x"}, "did you mean LASTHOP_HTTP_LISTEN?"),
        ([], {"LASTHOP_TLS_CERT": "/no", "LASTHOP_TLS_KEY": "/no"}, "TLS certificate /no"),
        (["--frobnicate"], {}, "No such option: --frobnicate"),
    ],
)
def test_a_mistake_is_said_in_one_line(
    lasthop: Lasthop,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    arguments: list[str],
    environment: dict[str, str],
    message: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert message in lasthop("up", "--data", str(tmp_path), *arguments, fails=True).error


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"this is not a database at all, and long enough" * 100)
    assert "damaged" in refused("--data", str(tmp_path))


def test_what_was_accepted_is_there_after_kill_9(tmp_path: Path) -> None:
    with gateway(tmp_path / "data") as up:
        up.request("POST", "/v1/devices", b'{"name": "phone"}')
        message = up.push({"device": "phone", "body": "hello"})
        up.kill()
        with up.again() as back:
            assert back.http == up.http
            summary = back.get_json(f"/v1/messages/{message}")["summary"]
            assert summary["states"] == {"pending": 1}


def test_a_repeated_publish_is_one_message_also_after_kill_9(tmp_path: Path) -> None:
    once = {"Idempotency-Key": "order-7"}
    with gateway(tmp_path / "data") as up:
        first = up.push({"topic": "news", "body": "hello"}, **once)
        assert up.push({"topic": "news", "body": "hello"}, **once) == first
        up.kill()
        with up.again() as back:
            assert back.push({"topic": "news", "body": "hello"}, **once) == first


def test_a_shutdown_lets_waiting_requests_go(tmp_path: Path) -> None:
    with gateway(tmp_path / "data") as up:
        up.request("POST", "/v1/devices", b'{"name": "phone"}')
        message = up.push({"device": "phone", "body": "hello"})
        answers: list[tuple[int, bytes]] = []
        path = f"/v1/messages/{message}?wait=delivered&timeout=300"
        waiting = threading.Thread(target=lambda: answers.append(up.request("GET", path)))
        waiting.start()
        eventually(
            lambda: b"lasthop_http_waiting 1.0" in up.request("GET", "/metrics")[1],
            "the request waits",
        )
        started = time.monotonic()
        assert up.terminate() == 0
        waiting.join(DEADLINE)
        assert answers[0][0] == 200
        assert json.loads(answers[0][1])["satisfied"] is False
        assert time.monotonic() - started < 5, "the wait was not cut short"


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with gateway(tmp_path / "data") as up:
        # A request that is never sent to its end keeps the shutdown waiting.
        with socket.create_connection(("127.0.0.1", int(up.http.rpartition(":")[2]))) as stuck:
            stuck.sendall(b"POST /news HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhe")
            eventually(lambda: up.request("GET", "/ready")[0] == 200, "it serves")
            up.signal(signal.SIGTERM)
            eventually(
                lambda: "repeat the signal to abort" in up.errors.read_text(), "it has heard"
            )
            up.signal(signal.SIGTERM)
            assert up.wait() == 1
        assert "aborted" in up.errors.read_text()


def test_it_can_be_stopped_when_nobody_listens_to_it_any_more(tmp_path: Path) -> None:
    arguments = [*LASTHOP, "up", "--json", "--data", str(tmp_path / "data")]
    arguments += ["--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0"]
    with subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as up:
        assert up.stdout is not None
        assert up.stderr is not None
        up.stdout.readline()
        up.stderr.close()
        up.stdout.close()
        up.send_signal(signal.SIGTERM)
        assert up.wait(DEADLINE) == 0


def test_debugging_shows_every_event_with_its_ids(tmp_path: Path) -> None:
    arguments = ["up", "--json", "--data", str(tmp_path / "data")]
    arguments += ["--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0"]
    message = ""
    with Process(arguments, tmp_path / "errors", LASTHOP_LOG_LEVEL="debug") as up:
        http = json.loads(up.line())["http"].removeprefix("http://")
        for path, body in (
            ("/v1/devices", {"name": "phone"}),
            ("/v1/messages", {"device": "phone", "body": "hello"}),
        ):
            connection = HTTPConnection(http, timeout=DEADLINE)
            connection.request("POST", path, json.dumps(body))
            message = json.loads(connection.getresponse().read()).get("id", "")
            connection.close()
        assert up.terminate() == 0
    said = [json.loads(line) for line in (tmp_path / "errors").read_text().splitlines()]
    events = [line for line in said if line["level"] == "debug" and "n" in line]
    assert [line["n"] for line in events] == list(range(len(events)))
    (accepted,) = [line for line in events if line["event"] == "accepted"]
    assert accepted["device"] == "phone"
    assert message.startswith(accepted["message"])
    assert "hello" not in json.dumps(events)


def test_a_shutdown_leaves_one_clean_file(tmp_path: Path) -> None:
    with gateway(tmp_path / "data") as up:
        up.push({"topic": "news", "body": "hello"})
        assert up.terminate() == 0
    left = {path.name for path in (tmp_path / "data").iterdir()}
    assert left == {"store.db", "lock", "log"}
    segments = list((tmp_path / "data" / "log").glob("date=*/events-*.jsonl"))
    kinds = [json.loads(line)["kind"] for line in segments[0].read_text().splitlines()]
    assert kinds == ["gateway_started", "published"]


def test_a_gateway_for_other_machines_lets_nobody_in_without_a_credential(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "data", http="0.0.0.0:0") as up:
        port = up.http.rpartition(":")[2]
        up.http = f"http://127.0.0.1:{port}"
        assert up.request("POST", "/news", b"hello")[0] == 401
        assert up.request("GET", "/health")[0] == 200


def test_the_first_credential_is_made_while_the_gateway_runs(tmp_path: Path) -> None:
    with GatewayProcess(tmp_path / "data", http="0.0.0.0:0") as up:
        up.http = f"http://127.0.0.1:{up.http.rpartition(':')[2]}"
        (said,) = map(json.loads, up.errors.read_text().splitlines())
        assert "--scope admin --token CODE" in said["event"]
        new = json.dumps({"name": "root", "scopes": ["admin"]}).encode()
        code = {"Authorization": f"Bearer {said['code']}"}
        status, answer = up.request("POST", "/v1/credentials", new, **code)
        assert status == 201
        assert up.request("POST", "/v1/credentials", new, **code)[0] == 401
        root = {"Authorization": f"Bearer {json.loads(answer)['token']}"}
        assert up.request("GET", "/v1/credentials", None, **root)[0] == 200
        up.terminate()
        up.errors.unlink()
        with GatewayProcess(tmp_path / "data", http="0.0.0.0:0") as again:
            assert "CODE" not in again.errors.read_text()


def test_who_reads_what_to_try_can_call_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "a place" / "lasthop"
    here.parent.mkdir()
    here.write_text("#!/bin/sh\n")
    here.chmod(0o755)
    places = Places(
        pid=1,
        http="http://h:1",
        tcp="tcp://h:2",
        websocket=None,
        data="data",
        first_start=True,
        open_house=True,
    )

    def said() -> str:
        greeting.for_people(places)
        return next(line for line in capsys.readouterr().out.splitlines() if "device run" in line)

    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", [str(here)])
    assert said().startswith(f"  '{here}' device run")
    monkeypatch.setenv("PATH", str(here.parent))
    assert said().startswith("  lasthop device run")
    monkeypatch.setattr(sys, "argv", ["/somewhere/__main__.py"])
    assert said().startswith("  lasthop device run")
