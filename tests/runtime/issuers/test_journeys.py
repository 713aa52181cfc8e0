"""Tokens of an issuer at every door of a running gateway.

About `runtime/serve.py` and `runtime/doctor/signed_tokens.py`.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lasthop.runtime.doctor import FindingState, examine
from lasthop.runtime.settings import Settings, render
from lasthop.runtime.settings.publishers import Access
from lasthop.wire.pap.documents import Document, PushMessage
from lasthop.wire.pap.submission import PapSubmission, write_submission
from lasthop.wire.pap.versions import Version
from tests.access.pap.initiating import CONTENT, user
from tests.runtime.issuers.signing import ec_key, issuer, jwk, key_set, token
from tests.runtime.processes import LASTHOP, DeviceProcess, GatewayProcess


def now() -> int:
    return time.time_ns() // 1000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("signed")
    (place / "keys.json").write_bytes(key_set(jwk(ec_key(), kid="one")))
    trusted = issuer(
        keys=str(place / "keys.json"), roles_field="groups", admin_roles=("admins",), refresh="30s"
    )
    settings = Settings(issuers=[trusted], access=Access(anonymous="never"))
    (place / "lasthop.toml").write_text(render(settings))
    return place


@pytest.fixture(scope="module")
def up(place: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(place / "data", "--config", str(place / "lasthop.toml")) as process:
        yield process


def bearer(**fields: object) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(now=now(), **fields)}"}  # type: ignore[arg-type]


def test_a_service_publishes_over_rest_and_pap_and_its_device_connects(
    up: GatewayProcess, tmp_path: Path
) -> None:
    admin = bearer(sub="root", groups=["admins"])
    device = json.dumps({"name": "phone", "user": "anna"}).encode()
    assert up.request("POST", "/v1/devices", device, **admin)[0] == 201
    rule = {"who": ["user:anna"], "allow": ["send"], "on": ["device:phone", "user:anna"]}
    assert up.request("PUT", "/v1/rules/anna", json.dumps(rule).encode(), **admin)[0] == 200
    up.push({"to": "device:phone", "body": "by REST"}, **bearer())
    push = Document(PushMessage("1@pi", (user("anna"),)), Version.V2_1, ("2.1",))
    kind, body = write_submission(PapSubmission(push, CONTENT))
    status, answer = up.request("POST", "/pap", body, **bearer(), **{"Content-Type": kind})
    assert (status, b'code="1001"' in answer) == (202, True)
    for scheme in (up.tcp, up.websocket, up.http + "/hop"):
        options = ["--token", token(now=now())]
        with DeviceProcess(scheme, "phone", tmp_path / "errors", *options) as phone:
            up.push({"to": "device:phone", "body": scheme}, **bearer())
            while scheme.encode() not in phone.line():
                pass


def test_nobody_is_let_in_by_a_token_of_somebody_else(up: GatewayProcess) -> None:
    wrong = {"Authorization": f"Bearer {token(ec_key(1), now=now(), groups=['admins'])}"}
    for headers in (wrong, bearer(exp=1), bearer(aud="x"), {}):
        assert up.request("GET", "/v1/credentials", None, **headers)[0] == 401


def test_commands_take_a_token_of_an_issuer(up: GatewayProcess) -> None:
    signed = token(now=now(), sub="root", groups=["admins"])
    command = [*LASTHOP, "user", "list", "--url", up.http, "--token", signed]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_metrics_say_that_the_keys_are_there(up: GatewayProcess) -> None:
    assert b"lasthop_issuers_failing 0.0" in up.request("GET", "/metrics")[1]


def test_the_doctor_fetches_the_keys(place: Path) -> None:
    found = {f.name: f for f in examine(place / "lasthop.toml", environment={}, data=place / "x")}
    assert found["issuer company"].state is FindingState.GOOD
    broken = place / "broken.toml"
    broken.write_text(render(Settings(issuers=[issuer(keys=str(place / "none.json"))])))
    found = {f.name: f for f in examine(broken, environment={}, data=place / "x")}
    assert found["issuer company"].state is FindingState.BROKEN
    assert "No such file" in found["issuer company"].found
