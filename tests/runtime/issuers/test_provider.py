"""People sign in to the dashboard of a running gateway, at a provider that others have written.

About `runtime/dashboard/sign_in.py` and `runtime/issuers/signing_in.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest

from lasthop.runtime.settings import Settings, render
from lasthop.runtime.settings.publishers import Access
from tests.groups import claim_group
from tests.runtime.issuers.signing import issuer
from tests.runtime.processes import DEADLINE, GatewayProcess
from tests.wire.installed import need

PROVIDER = "oidc-provider@9.13.3"
SCRIPT = Path(__file__).with_name("provider") / "provider.mjs"
SECRET = "a secret with spaces & signs"


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where npm has installed the provider; skipped, or failed in CI, where it cannot."""
    need("node", "npm")
    place = tmp_path_factory.mktemp("npm")
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place), PROVIDER]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode and os.environ.get("CI") == "true":
        pytest.fail(f"npm could not install {PROVIDER}: {done.stderr[-500:]}")
    if done.returncode:
        pytest.skip(f"npm could not install {PROVIDER}")
    return place


@pytest.fixture(scope="module")
def address() -> str:
    """Where the gateway is to be, in people's browsers."""
    return f"http://127.0.0.1:{free_port()}"


@pytest.fixture(scope="module")
def provider(modules: Path, address: str) -> Iterator[str]:
    """The URL of the provider, which knows the gateway as a client."""
    client = {
        "client_id": "lasthop",
        "client_secret": SECRET,
        "redirect_uris": [f"{address}/dashboard/sign-in/done"],
        "post_logout_redirect_uris": [f"{address}/dashboard/login"],
    }
    node = shutil.which("node")
    assert node is not None
    arguments = [node, str(SCRIPT), str(modules), str(free_port()), json.dumps([client])]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert url.startswith("http://"), "the provider did not start"
        yield url
    finally:
        process.kill()
        process.wait(DEADLINE)
        if process.stdout is not None:
            process.stdout.close()


@pytest.fixture(scope="module")
def up(
    provider: str, address: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GatewayProcess]:
    place = tmp_path_factory.mktemp("signing-in")
    (place / "secret").write_text(SECRET)
    trusted = issuer(
        url=provider,
        audience="",
        client_id="lasthop",
        client_secret_file=str(place / "secret"),
        public_url=address,
        roles_field="groups",
        admin_roles=("admins",),
    )
    settings = Settings(issuers=[trusted], access=Access(anonymous="never"))
    (place / "lasthop.toml").write_text(render(settings))
    http = address.removeprefix("http://")
    config = str(place / "lasthop.toml")
    with GatewayProcess(place / "data", "--config", config, http=http) as process:
        yield process


@pytest.fixture
def browser() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=DEADLINE) as client:
        yield client


def go(browser: httpx.Client, answer: httpx.Response, who: str) -> httpx.Response:
    """Follow where an answer leads, log in at the provider as somebody and agree, until a page of
    the gateway is reached that leads nowhere."""
    for _ in range(20):
        url = str(answer.url)
        if answer.is_redirect:
            answer = browser.get(urljoin(url, answer.headers["location"]))
            continue
        action = re.search(r'<form[^>]* action="([^"]+)"', answer.text)
        prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
        if action is None or prompt is None:
            return answer
        form = {"prompt": prompt[1], "login": who, "password": "x"}
        answer = browser.post(urljoin(url, action[1]), data=form)
    pytest.fail("the way does not end")


def signed_in(browser: httpx.Client, up: GatewayProcess, who: str) -> httpx.Response:
    return go(browser, browser.get(f"{up.http}/dashboard/sign-in?with=company"), who)


def test_an_administrator_signs_in_and_out(up: GatewayProcess, browser: httpx.Client) -> None:
    assert browser.get(f"{up.http}/dashboard").headers["location"] == "/dashboard/login"
    assert browser.get(f"{up.http}/dashboard/sign-in").json() == {"issuers": ["company"]}
    assert browser.get(f"{up.http}/dashboard/data/about").status_code == 401
    done = signed_in(browser, up, "root")
    assert (done.status_code, "url=/dashboard" in done.text) == (200, True)
    cookies = done.headers.get_list("set-cookie")
    assert [c.partition("=")[0] for c in cookies] == ["lasthop_session", "lasthop_sign_in"]
    assert "SameSite=Strict" in cookies[0]
    assert "Max-Age=0" in cookies[1]
    assert browser.get(f"{up.http}/dashboard").status_code == 200
    assert browser.get(f"{up.http}/dashboard/data/about").json()["who"] == "user/root"
    made = browser.post(
        f"{up.http}/dashboard/v1/devices",
        json={"name": "phone"},
        headers={"x-lasthop-dashboard": "1"},
    )
    assert made.status_code == 201
    session = browser.cookies["lasthop_session"]
    left = browser.post(f"{up.http}/dashboard/logout")
    assert left.headers["location"] == "/dashboard/login?left=company"
    stolen = {"cookie": f"lasthop_session={session}"}
    assert httpx.get(f"{up.http}/dashboard/data/about", headers=stolen).status_code == 401
    out = browser.get(f"{up.http}/dashboard/sign-in/out?with=company")
    assert urlsplit(out.headers["location"]).path == "/session/end"
    page = browser.get(out.headers["location"])
    assert page.status_code == 200


def test_who_is_no_administrator_stays_outside(up: GatewayProcess, browser: httpx.Client) -> None:
    done = signed_in(browser, up, "anna")
    assert str(done.url) == f"{up.http}/dashboard/login?problem=no-admin-role"
    assert "lasthop_session" not in browser.cookies


def test_an_answer_counts_once_and_in_its_own_browser(
    up: GatewayProcess, browser: httpx.Client
) -> None:
    begun = browser.get(f"{up.http}/dashboard/sign-in?with=company")
    cookie = begun.headers["set-cookie"]
    assert "HttpOnly; SameSite=Lax" in cookie
    assert "Path=/dashboard/sign-in;" in cookie
    answers: list[str] = []
    browser.event_hooks["request"] = [lambda request: answers.append(str(request.url))]
    go(browser, begun, "root2")
    (back,) = [url for url in answers if "/sign-in/done" in url]
    with httpx.Client() as other:
        refused = other.get(back)
        assert refused.headers["location"] == "/dashboard/login?problem=refused"
        assert "lasthop_session" not in other.cookies
    # The browser's own second attempt with the code fails at the provider.
    again = httpx.get(back, headers={"cookie": cookie.partition(";")[0]})
    assert again.headers["location"] == "/dashboard/login?problem=refused"


def test_the_provider_demands_the_proof_of_the_code(
    up: GatewayProcess, provider: str, browser: httpx.Client
) -> None:
    """Taking the proof away on the way is noticed."""
    begun = browser.get(f"{up.http}/dashboard/sign-in?with=company")
    parts = urlsplit(begun.headers["location"])
    asked = parse_qs(parts.query)
    assert asked["code_challenge_method"] == ["S256"]
    without = re.sub(r"&code_challenge(_method)?=[^&]*", "", begun.headers["location"])
    refused = go(browser, browser.get(without), "root3")
    assert str(refused.url).startswith(f"{up.http}/dashboard/login?problem=refused")


@pytest.mark.parametrize(
    "path",
    [
        "sign-in?with=https://evil.example.org",
        "sign-in?with=//evil.example.org",
        "sign-in/out?with=https://evil.example.org",
        "sign-in/out?with=other",
        "sign-in/done?with=company&next=https://evil.example.org",
        "sign-in/done?code=x&state=y&redirect_uri=https://evil.example.org",
        "login?next=https://evil.example.org",
        "logout?next=https://evil.example.org",
    ],
)
def test_nothing_leads_to_a_place_that_a_request_names(
    up: GatewayProcess, browser: httpx.Client, path: str
) -> None:
    answer = browser.get(f"{up.http}/dashboard/{path}")
    assert "evil" not in answer.headers.get("location", "")
    assert "evil" not in answer.text
    assert answer.status_code in (200, 303, 401, 404)


def test_the_log_says_who_came_and_nothing_secret(up: GatewayProcess) -> None:
    said = up.errors.read_text()
    assert '"event": "signed_in"' in said
    assert SECRET not in said
    assert "eyJ" not in said
    assert "code=" not in said


@pytest.fixture(scope="module", autouse=True)
def _one_at_a_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    claim_group("issuers", tmp_path_factory)
