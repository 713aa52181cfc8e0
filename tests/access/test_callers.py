"""Who may ask for what."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable

import httpx
import pytest

from lasthop.access.rest import Door, RestSettings, make_app
from lasthop.core.apps.credentials import Scope
from lasthop.core.quota import Rate
from lasthop.core.rights.rule import AccessRule, Verb
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory


@pytest.fixture
def closed(live: LiveInMemory) -> Door:
    return make_app(live, RestSettings())


@pytest.fixture
def admit(live: LiveInMemory) -> Callable[..., str]:
    def admit(*scopes: Scope, app: str = "default") -> str:
        secret = f"secret of {app} for {' '.join(scopes)}".replace(" ", "-")
        live.gateway.admin.admit(secret, app, "svc", set(scopes), live.time)
        live.turn()
        return secret

    return admit


async def attempt(
    door: Door, method: str, path: str, *, token: str | None = None, app: str | None = None
) -> int:
    async with knock(door, peer="192.0.2.1", token=token, app=app) as http:
        return (await http.request(method, path, content=b"{}")).status_code


async def test_without_a_credential_nothing_is_done(closed: Door) -> None:
    async with knock(closed) as http:
        for path in "/v1/messages", "/news":
            answer = await http.post(path, content=b"{}")
            assert refusal(answer) == (401, "unauthorized", None)
            assert answer.headers["www-authenticate"].startswith("Bearer")
        assert (await http.get("/v1/devices")).status_code == 401


@pytest.mark.parametrize(
    "header",
    ["Bearer wrong", "Bearer", "Basic !!!", "Basic YWJj", "Digest x", "Bearer ü", "x" * 2000],
)
async def test_bad_credentials_are_refused_even_from_this_machine(door: Door, header: str) -> None:
    async with knock(door) as http:
        answer = await http.get("/v1/devices", headers={b"authorization": header.encode()})
    assert refusal(answer) == (401, "unauthorized", None)


@pytest.mark.parametrize("user", ["", "anyone"])
async def test_basic_carries_the_token_as_password(
    closed: Door, admit: Callable[..., str], user: str
) -> None:
    secret = admit(Scope.DEVICES)
    value = b64encode(f"{user}:{secret}".encode()).decode()
    async with knock(closed, peer="192.0.2.1") as http:
        answer = await http.get("/v1/devices", headers={"authorization": f"Basic {value}"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "method, path, needed, status",
    [
        ("POST", "/v1/messages", Scope.PUBLISH, 400),
        ("POST", "/news", Scope.PUBLISH, 200),
        ("GET", "/v1/messages/1", Scope.PUBLISH, 404),
        ("DELETE", "/v1/messages/1", Scope.PUBLISH, 404),
        ("GET", "/v1/devices", Scope.DEVICES, 200),
        ("POST", "/v1/devices", Scope.DEVICES, 400),
        ("GET", "/v1/credentials", Scope.ADMIN, 200),
        ("POST", "/v1/credentials", Scope.ADMIN, 400),
    ],
)
async def test_every_operation_needs_its_scope(
    closed: Door,
    admit: Callable[..., str],
    method: str,
    path: str,
    needed: Scope,
    status: int,
) -> None:
    for scope in set(Scope) - {Scope.RULES}:
        expected = status if scope in {needed, Scope.ADMIN} else 403
        assert await attempt(closed, method, path, token=admit(scope)) == expected


async def test_a_credential_of_the_scope_rules_does_what_rules_allow_and_nothing_else(
    closed: Door, live: LiveInMemory, admit: Callable[..., str]
) -> None:
    token = admit(Scope.RULES)

    async def answers() -> list[int]:
        asked = [("POST", "/news"), ("POST", "/secret"), ("PUT", "/v1/topics/news")]
        asked += [("GET", "/v1/devices"), ("GET", "/v1/credentials"), ("GET", "/v1/messages/1")]
        return [await attempt(closed, method, path, token=token) for method, path in asked]

    assert await answers() == [403, 403, 403, 403, 403, 404]
    news = AccessRule(
        name="news", who=("credential:svc",), allow=(Verb.PUBLISH,), on=("topic:news", "device:*")
    )
    live.gateway.rules.add(news)
    assert await answers() == [200, 403, 200, 403, 403, 404]
    live.gateway.rules.add(
        AccessRule(name="all", who=("credential:svc",), allow=(Verb.ADMINISTER,))
    )
    assert await answers() == [200, 403, 200, 200, 403, 404]
    live.gateway.rules.add(AccessRule(name="no", who=("*",), deny=(Verb.ADMINISTER,), on=("app:",)))
    assert await answers() == [200, 403, 200, 403, 403, 404]


async def test_a_revoked_credential_is_refused_at_once(
    closed: Door, live: LiveInMemory, admit: Callable[..., str]
) -> None:
    secret = admit(Scope.DEVICES)
    assert await attempt(closed, "GET", "/v1/devices", token=secret) == 200
    live.gateway.admin.dismiss("default", "svc")
    assert await attempt(closed, "GET", "/v1/devices", token=secret) == 401
    assert await attempt(closed, "GET", "/v1/devices", token=secret) == 401


async def test_a_credential_that_is_made_again_works_again(
    closed: Door, live: LiveInMemory, admit: Callable[..., str]
) -> None:
    secret = admit(Scope.DEVICES)
    assert await attempt(closed, "GET", "/v1/devices", token=secret) == 200
    live.gateway.admin.dismiss("default", "svc")
    admit(Scope.DEVICES)
    assert await attempt(closed, "GET", "/v1/devices", token=secret) == 200


async def test_a_known_credential_costs_no_further_call(
    closed: Door, live: LiveInMemory, admit: Callable[..., str]
) -> None:
    secret = admit(Scope.PUBLISH)
    await attempt(closed, "POST", "/news", token=secret)
    before = live.calls
    await attempt(closed, "POST", "/news", token=secret)
    assert live.calls == before + 1


async def test_only_administrators_cross_from_app_to_app(
    closed: Door, admit: Callable[..., str]
) -> None:
    ours, admin = admit(Scope.DEVICES), admit(Scope.ADMIN)
    assert await attempt(closed, "GET", "/v1/devices", token=ours, app="default") == 200
    assert await attempt(closed, "GET", "/v1/devices", token=ours, app="other") == 403
    assert await attempt(closed, "GET", "/v1/devices", token=admin, app="other") == 200


@pytest.mark.parametrize("app", ["", "a b", "x" * 65, "-a", "a/b"])
async def test_an_app_has_a_plain_name(http: httpx.AsyncClient, app: str) -> None:
    answer = await http.get("/v1/devices", headers={"x-app": app})
    assert refusal(answer) == (400, "invalid_request", "X-App")


async def test_quotas_are_per_credential(live: LiveInMemory, admit: Callable[..., str]) -> None:
    door = make_app(live, RestSettings(messages=Rate(1, 1)))
    ours, theirs = admit(Scope.PUBLISH), admit(Scope.PUBLISH, app="other")
    assert await attempt(door, "POST", "/news", token=ours) == 200
    assert await attempt(door, "POST", "/news", token=ours) == 429
    assert await attempt(door, "POST", "/news", token=theirs) == 200
    admin = admit(Scope.ADMIN, app="third")
    assert await attempt(door, "POST", "/news", token=admin, app="fourth") == 200
    assert await attempt(door, "POST", "/news", token=admin, app="fifth") == 429
