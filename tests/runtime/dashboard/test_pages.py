"""Who may see the dashboard, and what its paths say: over real HTTP, without a browser."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.runtime.dashboard.conftest import Guarded
from tests.runtime.processes import DEADLINE, GatewayProcess
from tests.transport.certificates import Authority


class Answer:
    """A response that was read to its end."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    gateway: GatewayProcess, method: str, path: str, body: bytes | None = None, **headers: str
) -> Answer:
    """One request; `_` in the names of headers stands for a dash."""
    connection = http.client.HTTPConnection(gateway.http.removeprefix("http://"), timeout=DEADLINE)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def log_in(guarded: Guarded, token: str, **headers: str) -> Answer:
    body = urlencode({"token": token}).encode()
    return ask(guarded.gateway, "POST", "/dashboard/login", body, **headers)


@pytest.fixture(scope="module")
def cookie(guarded: Guarded) -> str:
    answer = log_in(guarded, guarded.admin)
    assert (answer.status, answer.headers["location"]) == (303, "/dashboard")
    return answer.headers["set-cookie"].partition(";")[0]


def test_an_open_gateway_shows_everything_to_this_machine(up: GatewayProcess) -> None:
    page = ask(up, "GET", "/dashboard")
    assert page.status == 200
    assert b"<nav" in page.body
    assert ask(up, "GET", "/dashboard/data/about").json["who"] == "anonymous"


def test_nothing_from_elsewhere_and_no_script_in_a_page_is_allowed(up: GatewayProcess) -> None:
    for path in ("/", "/device", "/dashboard", "/dashboard/login", "/sdk/index.js"):
        headers = ask(up, "GET", path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_a_page_of_elsewhere_is_not_a_process_of_this_machine(up: GatewayProcess) -> None:
    answer = ask(up, "GET", "/dashboard/data/about", Origin="http://evil.example")
    assert answer.status == 401
    rebound = ask(up, "GET", "/dashboard/data/about", Host="evil.example")
    assert rebound.status == 401


def test_a_link_on_another_sites_page_leads_to_the_dashboard(up: GatewayProcess) -> None:
    assert ask(up, "GET", "/dashboard", Sec_Fetch_Site="cross-site").status == 200
    assert ask(up, "GET", "/dashboard/data/about", Sec_Fetch_Site="cross-site").status == 401


def test_files_are_known_again(up: GatewayProcess) -> None:
    first = ask(up, "GET", "/dashboard/static/app.js")
    assert first.headers["content-type"].startswith("text/javascript")
    again = ask(up, "GET", "/dashboard/static/app.js", If_None_Match=first.headers["etag"])
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/dashboard/static/nothing.js",
        "/dashboard/static/../pages.py",
        "/dashboard/data/nothing",
        "/dashboard/nothing",
        "/sdk/nothing.js",
    ],
)
def test_what_is_not_there_is_said_to_be_not_there(up: GatewayProcess, path: str) -> None:
    answer = ask(up, "GET", path)
    assert (answer.status, answer.json["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    "path,status,detail",
    [
        ("devices?after=x", 400, "after: expected the number of a device"),
        ("devices?nothing=1", 400, "nothing: unknown field"),
        ("device?name=nobody", 404, "no such device"),
        ("topic?name=nothing", 404, "no device has subscribed to this topic"),
    ],
)
def test_bad_questions_are_answered_clearly(
    up: GatewayProcess, path: str, status: int, detail: str
) -> None:
    answer = ask(up, "GET", f"/dashboard/data/{path}")
    assert answer.status == status
    assert answer.json["error"]["detail"].startswith(detail)


def test_a_topic_may_still_be_called_device(up: GatewayProcess) -> None:
    assert ask(up, "POST", "/device", b"hello").status == 200
    assert ask(up, "POST", "/sdk", b"hello").status == 200


def test_before_the_pipeline_has_run_there_is_nothing_to_draw(up: GatewayProcess) -> None:
    assert ask(up, "GET", "/dashboard/data/pipeline").json is None
    policies = ask(up, "GET", "/dashboard/data/policies").json
    assert policies == {"in_force": "built-in", "versions": [], "total": 0}


# Logging in.


def test_who_is_not_known_is_asked_to_log_in(guarded: Guarded) -> None:
    page = ask(guarded.gateway, "GET", "/dashboard")
    assert (page.status, page.headers["location"]) == (303, "/dashboard/login")
    assert b"<form" in ask(guarded.gateway, "GET", "/dashboard/login").body
    for path in ("data/about", "live", "v1/devices"):
        answer = ask(guarded.gateway, "GET", f"/dashboard/{path}")
        assert answer.status == 401
        # Or the browser would ask for a password by itself.
        assert answer.headers["www-authenticate"] is None


def test_the_cookie_is_for_no_script_and_no_other_site(guarded: Guarded) -> None:
    attributes = log_in(guarded, guarded.admin).headers["set-cookie"].split("; ")[1:]
    assert set(attributes) == {"Path=/dashboard", "Max-Age=43200", "HttpOnly", "SameSite=Strict"}


@pytest.mark.parametrize(
    "proxy, secure",
    [
        ({"X_Forwarded_Proto": "https"}, True),
        ({"X_Forwarded_Proto": "HTTPS, http"}, True),
        ({"Forwarded": "for=192.0.2.1;proto=https;by=203.0.113.1"}, True),
        ({"Forwarded": 'For="[2001:db8::1]"; Proto="https", for=10.0.0.1;proto=http'}, True),
        ({"X_Forwarded_Proto": "http"}, False),
        ({"X_Forwarded_Proto": "http, https"}, False),
        ({"Forwarded": "for=192.0.2.1;proto=http, for=10.0.0.1;proto=https"}, False),
        ({"Forwarded": "for=192.0.2.1"}, False),
        ({"X_Forwarded_For": "https"}, False),
    ],
    ids=str,
)
def test_the_cookie_is_for_tls_only_where_a_proxy_ends_it(
    guarded: Guarded, proxy: dict[str, str], secure: bool
) -> None:
    said = log_in(guarded, guarded.admin, **proxy).headers["set-cookie"]
    assert said.endswith("; Secure") is secure
    gone = ask(guarded.gateway, "POST", "/dashboard/logout", b"", **proxy)
    assert gone.headers["set-cookie"].endswith("; Secure") is secure


def test_the_cookie_is_for_tls_only_where_the_gateway_ends_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    config = tmp_path / "lasthop.toml"
    config.write_text(f'[tls]\ncert = "{authority._chain}"\nkey = "{authority._key}"\n')
    with GatewayProcess(tmp_path / "data", "--config", str(config)) as up:
        connection = http.client.HTTPSConnection(
            up.http.removeprefix("https://"), timeout=DEADLINE, context=authority.client()
        )
        connection.request("POST", "/dashboard/logout", b"")
        assert Answer(connection.getresponse()).headers["set-cookie"].endswith("; Secure")
        connection.close()


def test_a_token_that_is_unknown_or_may_not_administer_is_refused(guarded: Guarded) -> None:
    for token, problem in (("nonsense", "unknown"), (guarded.publisher, "not-an-admin")):
        answer = log_in(guarded, token)
        assert answer.headers["location"] == f"/dashboard/login?problem={problem}"
        assert answer.headers["set-cookie"] is None


def test_a_login_from_another_sites_page_is_refused(guarded: Guarded) -> None:
    assert log_in(guarded, guarded.admin, Origin="http://evil.example").status == 403
    assert log_in(guarded, guarded.admin, Sec_Fetch_Site="cross-site").status == 403


def test_a_login_form_is_small(guarded: Guarded) -> None:
    answer = log_in(guarded, "x" * 5000)
    assert (answer.status, answer.json["error"]["code"]) == (413, "too_large")


def test_who_has_logged_in_sees_and_does_everything(guarded: Guarded, cookie: str) -> None:
    up = guarded.gateway
    assert ask(up, "GET", "/dashboard", Cookie=cookie).status == 200
    assert ask(up, "GET", "/dashboard/data/about", Cookie=cookie).json["who"] == "root"
    assert "devices" in ask(up, "GET", "/dashboard/v1/devices", Cookie=cookie).json
    body = b'{"topic":"news","body":"hello"}'
    mark = {"X_Lasthop_Dashboard": "1", "Cookie": cookie}
    assert ask(up, "POST", "/dashboard/v1/messages", body, **mark).status == 202


def test_the_cookie_opens_the_dashboard_only(guarded: Guarded, cookie: str) -> None:
    assert ask(guarded.gateway, "GET", "/v1/devices", Cookie=cookie).status == 401


@pytest.mark.parametrize(
    "page",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
    ids=str,
)
def test_the_cookie_is_nothing_from_another_origins_page(
    guarded: Guarded, cookie: str, page: dict[str, str]
) -> None:
    up, forged = guarded.gateway, {"Cookie": cookie, "X_Lasthop_Dashboard": "1", **page}
    for path in ("data/about", "live", "v1/devices"):
        assert ask(up, "GET", f"/dashboard/{path}", None, **forged).status == 401
    body = b'{"topic":"news","body":"forged"}'
    answer = ask(up, "POST", "/dashboard/v1/messages", body, **forged)
    assert answer.status == 403
    assert answer.json["error"]["detail"] == "the request came from another site's page"


def test_a_change_needs_more_than_the_cookie(guarded: Guarded, cookie: str) -> None:
    up = guarded.gateway
    body = b'{"topic":"news","body":"forged"}'
    assert ask(up, "POST", "/dashboard/v1/messages", body, Cookie=cookie).status == 403
    forged = {"Cookie": cookie, "X_Lasthop_Dashboard": "1", "Origin": "http://evil.example"}
    assert ask(up, "POST", "/dashboard/v1/messages", body, **forged).status == 403


def test_logging_out_ends_the_session(guarded: Guarded) -> None:
    up = guarded.gateway
    cookie = log_in(guarded, guarded.admin).headers["set-cookie"].partition(";")[0]
    gone = ask(up, "POST", "/dashboard/logout", b"", Cookie=cookie)
    assert gone.headers["set-cookie"].startswith("lasthop_session=; Path=/dashboard; Max-Age=0")
    assert ask(up, "GET", "/dashboard/data/about", Cookie=cookie).status == 401


def test_a_cookie_that_was_made_up_is_nothing(guarded: Guarded) -> None:
    answer = ask(guarded.gateway, "GET", "/dashboard/data/about", Cookie="lasthop_session=x; y=z")
    assert answer.status == 401


def test_a_revoked_credential_ends_its_sessions(guarded: Guarded) -> None:
    up = guarded.gateway
    bearer = f"Bearer {guarded.admin}"
    new = b'{"name":"temp","scopes":["admin"]}'
    made = ask(up, "POST", "/v1/credentials", new, Authorization=bearer)
    cookie = log_in(guarded, made.json["token"]).headers["set-cookie"].partition(";")[0]
    assert ask(up, "GET", "/dashboard/data/about", Cookie=cookie).status == 200
    ask(up, "DELETE", "/v1/credentials/temp", Authorization=bearer)
    assert ask(up, "GET", "/dashboard/data/about", Cookie=cookie).status == 401


# Live samples.


def test_samples_come_as_events_and_a_shutdown_does_not_wait_for_them(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with GatewayProcess(tmp_path_factory.mktemp("live") / "data") as up:
        address = up.http.removeprefix("http://")
        watcher = http.client.HTTPConnection(address, timeout=DEADLINE)
        watcher.request("GET", "/dashboard/live")
        stream = watcher.getresponse()
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.readline() == b"retry: 2000\n"
        up.push({"topic": "news", "body": "hello"})
        samples: list[dict[str, Any]] = []
        while not any(sample["accepted"] > 0 for sample in samples):
            line = stream.readline()
            if line.startswith(b"data: "):
                samples += json.loads(line.removeprefix(b"data: "))
        assert samples[-1]["messages"] == 0
        assert up.terminate() == 0
        watcher.close()
    assert "Traceback" not in up.errors.read_text()
