"""Every operation of every HTTP door, times every kind of caller: the expected cells are in
`matrix.txt`, written by hand. What devices ask for is in `tests/core/rights/test_matrix.py`."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from lasthop.access.rest.operations import EXPLAIN, OPERATIONS
from lasthop.core.rights.rule import Verb
from lasthop.runtime.dashboard.pages import FOLDERS, PATHS, PUBLIC, ROOT
from lasthop.runtime.settings import Settings, render
from lasthop.wire.pap.documents import (
    CancelMessage,
    CcqMessage,
    Document,
    PapMessage,
    PushMessage,
    ResultNotificationMessage,
    StatusQueryMessage,
)
from lasthop.wire.pap.submission import PapSubmission, write_submission
from lasthop.wire.pap.versions import Version
from tests.access.pap.initiating import CONTENT, user
from tests.runtime.issuers import signing
from tests.runtime.issuers.faking import CLIENT, FakeProvider, providing_beside
from tests.runtime.issuers.signing import ec_key, issuer, jwk, key_set
from tests.runtime.processes import GatewayProcess

TABLE = Path(__file__).with_name("matrix.txt")

CALLERS: dict[str, list[str] | None] = {
    "stranger": None,  # Comes through a proxy, without a credential.
    "local": None,  # A process of this machine, without a credential.
    "publisher": ["publish"],
    "keeper": ["devices"],
    "admin": ["admin"],
    "device": None,  # Shows the token of a device.
    "elsewhere": ["publish"],  # A publisher of another app that names this one.
    "limited": ["rules"],  # May publish to the topic news and send to the device phone.
    "denied": ["publish", "devices"],  # Is denied everything by a rule.
    "service": None,  # Shows a token that an issuer has signed; has the rights of `limited`.
    "forged": None,  # Shows such a token that somebody else has signed.
    "person": None,  # An administrator elsewhere, who has signed in to the dashboard.
}
"""The callers and the scopes of their credentials."""

BY_ID = {o.id: o for o in (*OPERATIONS, EXPLAIN)}

PAP: dict[str, PapMessage] = {
    "PushMessage": PushMessage("1@pi", (user("anna"),)),
    "CancelMessage": CancelMessage("0@pi", (user("anna"),)),
    "StatusQueryMessage": StatusQueryMessage("0@pi", (user("anna"),)),
    "CcqMessage": CcqMessage(user("anna")),
}


def read_table() -> dict[str, dict[str, str]]:
    """The expected cells by operation and caller."""
    lines = [s for s in TABLE.read_text().splitlines() if s and not s.startswith("#")]
    columns = lines[0].split()[1:]
    assert columns == list(CALLERS)
    rows: dict[str, dict[str, str]] = {}
    for line in lines[1:]:
        words = line.split()
        name, cells = " ".join(words[: -len(columns)]), words[-len(columns) :]
        assert name not in rows, f"{name} has two rows"
        rows[name] = dict(zip(columns, cells, strict=True))
    return rows


MATRIX = read_table()


def test_every_operation_has_a_row() -> None:
    named = {name.split()[0] for name in MATRIX}
    assert named == {*BY_ID, "line", "pap", "page"}
    requests = {kind.__name__ for kind in get_args(PapMessage) if kind.__name__.endswith("Message")}
    requests.discard(ResultNotificationMessage.__name__)  # The gateway asks an initiator.
    assert {f"pap {name}" for name in requests} == {n for n in MATRIX if n.startswith("pap ")}
    paths = {*PUBLIC, "/health", "/ready", "/metrics", "/dashboard", "/openapi.json", "/docs"}
    assert {f"page {path}" for path in paths} <= set(MATRIX)
    assert below_dashboard(MATRIX) == {*PATHS, *FOLDERS}
    print(f"{sum(map(len, MATRIX.values()))} cells in {len(MATRIX)} rows")


def below_dashboard(rows: Iterable[str]) -> set[str]:
    """The paths below the dashboard that rows are about; for those in a folder the folder."""
    found = set()
    for row in rows:
        path = row.split()[-1]
        if row.startswith("page ") and (path == ROOT or path.startswith(f"{ROOT}/")):
            below = path.removeprefix(ROOT).removeprefix("/")
            found.add(next((each for each in FOLDERS if below.startswith(each)), below))
    return found


def test_a_path_below_the_dashboard_needs_a_row() -> None:
    assert "data/links" in below_dashboard(MATRIX)
    without = [row for row in MATRIX if row != "page /dashboard/data/links"]
    assert {*PATHS, *FOLDERS} - below_dashboard(without) == {"data/links"}


def request_of(row: str) -> tuple[str, str, str, bytes | None]:
    """The method, path, content type and body of the request of a row. Names are of nothing that
    exists where a row is not about a target: whoever is let in changes nothing."""
    name, _, about = row.partition(" ")
    if name == "line":
        return "POST", f"/{about}", "text/plain", b"x"
    if name == "page":
        method, _, path = about.rpartition(" ")
        return method or "GET", path, "", b"" if method else None
    if name == "pap":
        message = PAP[about]
        content = CONTENT if isinstance(message, PushMessage) else None
        document = Document(message, Version.V2_1, ("2.1",))
        return "POST", "/pap", *write_submission(PapSubmission(document, content))
    operation = BY_ID[name].resolved()
    path = operation.path.replace("{app}", "default").replace("{topic}", about or "nothing")
    path = path.replace("{id}", "0292c5a1f3c000000000000000000001").replace("{address}", "USER:x")
    path = re.sub(r"\{\w+\}", "nobody", path)
    body: dict[str, Any] = {"to": about, "body": "x"} if name == "post_messages" else {}
    if name == "post_streams":
        body = {"to": about}
    return operation.method, path, "application/json", json.dumps(body).encode()


@pytest.fixture(scope="module")
def headers(up: GatewayProcess, fake: FakeProvider) -> dict[str, dict[str, str]]:
    """What each caller sends with its requests."""

    def ask(method: str, path: str, body: dict[str, Any], **more: str) -> Any:
        status, answer = up.request(method, path, json.dumps(body).encode(), **more)
        assert status < 300, answer
        return json.loads(answer)

    device = ask("POST", "/v1/devices", {"name": "phone", "user": "anna"})
    ask("POST", "/v1/devices", {"name": "tablet"})
    found: dict[str, dict[str, str]] = {
        "stranger": {"X-Forwarded-For": "203.0.113.5"},
        "local": {},
        "device": {"Authorization": f"Bearer {device['token']}"},
    }
    for caller, scopes in CALLERS.items():
        if scopes is not None:
            app = "other" if caller == "elsewhere" else "default"
            new = {"name": caller, "scopes": scopes, "app": app}
            token = ask("POST", "/v1/credentials", new)["token"]
            found[caller] = {"Authorization": f"Bearer {token}", "X-App": "default"}
    limits = ["topic:news", "device:phone"]
    limited: dict[str, Any] = {"who": ["credential:limited"]}
    ask(
        "PUT",
        "/v1/rules/limited",
        limited | {"allow": ["publish", "send"], "on": limits},
    )
    ask(
        "PUT",
        "/v1/rules/service",
        {"who": ["user:anna"]}
        | {"allow": ["publish", "send"], "on": ["topic:news", "device:phone"]},
    )
    for caller, key in (("service", ec_key()), ("forged", ec_key(1))):
        signed = signing.token(key, now=time.time_ns() // 1000)
        found[caller] = {"Authorization": f"Bearer {signed}"}
    cookie = signed_in(up, fake)
    found["person"] = found["stranger"] | {"Cookie": f"lasthop_session={cookie}"}
    denied = {"who": ["credential:denied"], "deny": list(Verb), "on": ["#"]}
    ask("PUT", "/v1/rules/denied", denied)
    return found


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeProvider]:
    """An issuer at which people sign in."""
    with providing_beside(lambda: time.time_ns() // 1000) as fake:
        yield fake


def signed_in(up: GatewayProcess, fake: FakeProvider) -> str:
    """Sign an administrator in; returns the cookie."""
    fake.fields = {"groups": ["admins"]}
    with httpx.Client(base_url=up.http, timeout=60) as browser:
        begun = browser.get("/dashboard/sign-in", params={"with": "people"})
        asked = parse_qs(urlsplit(begun.headers["location"]).query)
        (fake.nonce,) = asked["nonce"]
        answer = {"code": "x", "state": asked["state"][0]}
        browser.get("/dashboard/sign-in/done", params=answer).raise_for_status()
        return browser.cookies["lasthop_session"]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory, fake: FakeProvider) -> Iterator[GatewayProcess]:
    """An open gateway: the only one that lets anybody in without a credential."""
    place = tmp_path_factory.mktemp("matrix")
    (place / "keys.json").write_bytes(key_set(jwk(ec_key(), kid="one")))
    people = issuer(
        name="people",
        url=fake.url,
        audience="",
        client_id=CLIENT,
        prefix="people:",
        public_url="http://127.0.0.1",
        roles_field="groups",
        admin_roles=("admins",),
    )
    settings = Settings(issuers=[issuer(keys=str(place / "keys.json")), people])
    (place / "lasthop.toml").write_text(render(settings))
    with GatewayProcess(place / "data", "--config", str(place / "lasthop.toml")) as process:
        yield process


def cell(up: GatewayProcess, row: str, headers: dict[str, str]) -> str:
    """What becomes of a caller's request."""
    method, path, content_type, body = request_of(row)
    connection = http.client.HTTPConnection(up.http.removeprefix("http://"), timeout=60)
    try:
        sent = headers | ({"Content-Type": content_type} if body is not None else {})
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        status = response.status
        assert status < 500, (row, status)
        if status == 303:
            return "login"
        if row.startswith("pap ") and status == 202:
            return "403" if b'code="2001"' in response.read() else "in"
        return str(status) if status in (401, 403) else "in"
    finally:
        connection.close()


@pytest.mark.parametrize("row", MATRIX)
def test_every_caller_is_let_in_or_refused_as_the_table_says(
    up: GatewayProcess, headers: dict[str, dict[str, str]], row: str
) -> None:
    assert {caller: cell(up, row, headers[caller]) for caller in CALLERS} == MATRIX[row]
