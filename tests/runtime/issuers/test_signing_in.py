"""People sign in at an issuer, and nobody else does in their place."""

from __future__ import annotations

import hashlib
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from lasthop.clock import HOUR, MINUTE, SECOND
from lasthop.core.apps.credentials import Scope
from lasthop.errors import LasthopError, NotFound, Overloaded, Unauthorized
from lasthop.runtime.doctor.signed_tokens import issuers
from lasthop.runtime.issuers.fetching import KeyFetcher
from lasthop.runtime.issuers.signing_in import MOST_CODES, SignIn
from lasthop.runtime.issuers.verifying import TrustedIssuers
from tests.runtime.issuers.faking import CLIENT, FakeProvider, providing, providing_beside
from tests.runtime.issuers.signing import NOW, ec_key, issuer, token
from tests.runtime.issuers.test_fetching import Hands


class Desk:
    """A gateway at which people sign in, and what they bring."""

    def __init__(self, fake: FakeProvider, clock: Hands, **settings: Any) -> None:
        chosen: dict[str, Any] = {
            "url": fake.url,
            "audience": "",
            "client_id": CLIENT,
            "public_url": "https://push.example.org",
            "roles_field": "groups",
            "admin_roles": ("admins",),
        }
        self.fake = fake
        self.clock = clock
        trusted = TrustedIssuers([issuer(**chosen | settings)])
        self.trusted = trusted
        self.fetcher = KeyFetcher(trusted.issuers[0], clock)
        self.sign_in = SignIn({"company": self.fetcher})

    def begin(self) -> tuple[dict[str, str], str]:
        """What the browser takes to the issuer, and its cookie."""
        url, cookie = self.sign_in.begin("company", self.clock.time)
        parts = urlsplit(url)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"{self.fake.url}/auth"
        asked = {name: value for name, (value,) in parse_qs(parts.query).items()}
        self.fake.nonce = asked["nonce"]
        return asked, cookie

    async def finish(self, **changes: Any) -> Any:
        """Sign in, with some of the answer changed; None takes it away."""
        asked, cookie = self.begin()
        query = {"code": "abc", "state": asked["state"], **changes}
        query = {name: value for name, value in query.items() if value is not None}
        return await self.sign_in.finish(cookie, query, self.clock.time)


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
async def fake(clock: Hands) -> AsyncIterator[FakeProvider]:
    async with providing(clock.now) as fake:
        yield fake


@pytest.fixture
async def desk(fake: FakeProvider, clock: Hands) -> Desk:
    desk = Desk(fake, clock)
    await desk.fetcher.fetch()
    assert desk.trusted.issuers[0].problem == ""
    return desk


async def test_somebody_signs_in(desk: Desk) -> None:
    desk.fake.fields = {"groups": ["admins"]}
    found = await desk.finish()
    assert (found.issuer, found.user, found.scopes) == (
        "company",
        "anna",
        {Scope.RULES, Scope.ADMIN},
    )
    assert found.expires_at == NOW + 12 * HOUR
    (form,) = desk.fake.forms
    assert form["redirect_uri"] == "https://push.example.org/dashboard/sign-in/done"
    assert (form["code"], form["grant_type"]) == ("abc", "authorization_code")
    assert form["client_id"] == CLIENT


async def test_the_request_proves_whose_the_code_is(desk: Desk) -> None:
    asked, cookie = desk.begin()
    assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT)
    assert (asked["scope"], asked["code_challenge_method"]) == ("openid", "S256")
    await desk.sign_in.finish(cookie, {"code": "c", "state": asked["state"]}, NOW)
    verifier = desk.fake.forms[0]["code_verifier"]
    assert 43 <= len(verifier) <= 128
    digest = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    assert asked["code_challenge"] == digest.rstrip(b"=").decode()
    secrets = {asked["state"], asked["nonce"], verifier}
    assert len(secrets) == 3
    assert not any(secret in cookie for secret in secrets)
    again, other = desk.begin()
    assert other != cookie
    assert not secrets & {again["state"], again["nonce"]}


@pytest.mark.parametrize("state", [None, "", "x", "ü"])
async def test_an_answer_without_the_state_of_this_browser_is_refused(
    desk: Desk, state: str | None
) -> None:
    with pytest.raises(Unauthorized, match="attempt of this browser"):
        await desk.finish(state=state)
    assert desk.fake.forms == []


async def test_the_answer_to_another_browser_is_refused(desk: Desk) -> None:
    _, mine = desk.begin()
    others, _ = desk.begin()
    with pytest.raises(Unauthorized, match="attempt of this browser"):
        await desk.sign_in.finish(mine, {"code": "c", "state": others["state"]}, NOW)


@pytest.mark.parametrize("cookie", ["", "x", ".", "e30.x", "W10.", "ü.ü", "x" * 5000])
async def test_made_up_cookies_are_refused(desk: Desk, cookie: str) -> None:
    with pytest.raises(Unauthorized, match="not begun"):
        await desk.sign_in.finish(cookie, {"code": "c", "state": "s"}, NOW)


async def test_a_changed_cookie_is_refused(desk: Desk) -> None:
    asked, cookie = desk.begin()
    raw, _, mark = cookie.partition(".")
    changed = urlsafe_b64encode(b'["other",1,"x"]').rstrip(b"=").decode()
    for made in (f"{changed}.{mark}", f"{raw}.{mark[:-2]}AA", raw):
        with pytest.raises(Unauthorized, match="not begun"):
            await desk.sign_in.finish(made, {"code": "c", "state": asked["state"]}, NOW)


async def test_an_attempt_ends(desk: Desk) -> None:
    asked, cookie = desk.begin()
    for late in (10 * MINUTE + 1, -SECOND):
        with pytest.raises(Unauthorized, match="too long"):
            await desk.sign_in.finish(cookie, {"code": "c", "state": asked["state"]}, NOW + late)


async def test_another_process_knows_nothing_of_it(desk: Desk, fake: FakeProvider) -> None:
    asked, cookie = desk.begin()
    other = SignIn({"company": desk.fetcher})
    with pytest.raises(Unauthorized, match="not begun"):
        await other.finish(cookie, {"code": "c", "state": asked["state"]}, NOW)


@pytest.mark.parametrize(
    "changes",
    [
        {"error": "access_denied", "code": None},
        {"error": "access_denied"},
        {"code": None},
        {"code": ""},
    ],
)
async def test_a_refusal_signs_nobody_in(desk: Desk, changes: dict[str, Any]) -> None:
    with pytest.raises(Unauthorized, match="refused"):
        await desk.finish(**changes)
    assert desk.fake.forms == []


async def test_an_answer_of_another_issuer_is_refused(desk: Desk) -> None:
    with pytest.raises(Unauthorized, match="another issuer"):
        await desk.finish(iss="https://evil.example.org")
    assert (await desk.finish(iss=desk.fake.url)).user == "anna"
    desk.fake.document = {"authorization_response_iss_parameter_supported": True}
    await desk.fetcher.fetch()
    with pytest.raises(Unauthorized, match="another issuer"):
        await desk.finish()
    assert (await desk.finish(iss=desk.fake.url)).user == "anna"


@pytest.mark.parametrize(
    "fields",
    [
        {"nonce": None},
        {"nonce": ""},
        {"nonce": "another"},
        {"nonce": 7},
        {"nonce": ["x"]},
        {"aud": "another"},
        {"aud": [CLIENT, "another"]},
        {"aud": [CLIENT, "another"], "azp": "another"},
        {"azp": "another"},
        {"azp": None, "aud": None},
        {"iss": "https://evil.example.org"},
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"iat": 2**39},
        {"sub": None},
        {"groups": 7},
    ],
)
async def test_a_token_of_something_else_signs_nobody_in(
    desk: Desk, fields: dict[str, Any]
) -> None:
    desk.fake.fields = fields
    with pytest.raises(Unauthorized):
        await desk.finish()
    assert len(desk.fake.forms) == 1


async def test_several_audiences_need_the_party_that_asked(desk: Desk) -> None:
    desk.fake.fields = {"aud": [CLIENT, "another"], "azp": CLIENT}
    assert (await desk.finish()).user == "anna"


async def test_the_token_must_be_signed_by_the_issuer(desk: Desk) -> None:
    desk.fake.key = ec_key(1)
    with pytest.raises(Unauthorized, match="signature"):
        await desk.finish()


@pytest.mark.parametrize("kind", ["at+jwt", "logout+jwt"])
async def test_another_type_of_token_signs_nobody_in(desk: Desk, kind: str) -> None:
    desk.fake.header = {"typ": kind}
    with pytest.raises(Unauthorized, match="type"):
        await desk.finish()


async def test_a_token_for_signing_in_is_no_credential_and_the_reverse(
    fake: FakeProvider, clock: Hands
) -> None:
    desk = Desk(fake, clock, audience="https://push.example.org")
    await desk.fetcher.fetch()
    fake.fields = {"aud": "https://push.example.org"}
    with pytest.raises(Unauthorized, match="audience"):
        await desk.finish()
    fake.fields = {}
    with pytest.raises(Unauthorized, match="audience"):
        desk.trusted.verify(token(iss=fake.url, aud=CLIENT), clock.time)


async def test_without_an_audience_no_token_is_a_credential(desk: Desk) -> None:
    for audience in (CLIENT, ""):
        with pytest.raises(Unauthorized, match="no credentials"):
            desk.trusted.verify(token(iss=desk.fake.url, aud=audience), desk.clock.time)


@pytest.mark.parametrize(
    "status, answer",
    [
        (400, b'{"error":"invalid_grant"}'),
        (500, b""),
        (302, b""),
        (200, b""),
        (200, b"{}"),
        (200, b"[" * 10_000),
        (200, b'{"id_token": 7}'),
        (200, b'{"id_token": ""}'),
        (200, b'{"id_token": "a.b.c"}'),
        (200, b"\xff"),
    ],
)
async def test_what_is_no_answer_signs_nobody_in(desk: Desk, status: int, answer: bytes) -> None:
    desk.fake.status, desk.fake.answer = status, answer
    with pytest.raises(Unauthorized):
        await desk.finish()


async def test_an_endless_answer_is_cut(desk: Desk) -> None:
    desk.fake.answer = b"x" * 2_000_000
    with pytest.raises(Overloaded, match="too large"):
        await desk.finish()


async def test_a_secret_is_shown_to_the_issuer_only(
    fake: FakeProvider, clock: Hands, tmp_path: Path
) -> None:
    place = tmp_path / "secret"
    desk = Desk(fake, clock, client_secret_file=str(place), client_id="a:b")
    await desk.fetcher.fetch()
    with pytest.raises(Overloaded, match="No such file"):
        await desk.finish()
    place.write_text("s e%cret\n")
    fake.fields = {"aud": "a:b"}
    asked, cookie = desk.begin()
    await desk.sign_in.finish(cookie, {"code": "c", "state": asked["state"]}, NOW)
    (head,) = fake.heads
    (line,) = [line for line in head.split(b"\r\n") if line.startswith(b"Authorization: Basic ")]
    assert b64decode(line.split(b" ")[2]) == b"a%3Ab:s+e%25cret"
    assert "client_id" not in fake.forms[0]
    assert b"cret" not in str((asked, cookie)).encode()


async def test_an_issuer_that_is_down_is_told(desk: Desk, clock: Hands) -> None:
    other = Desk(desk.fake, clock)
    with pytest.raises(Overloaded, match="company cannot be reached"):
        other.sign_in.begin("company", NOW)
    asked, cookie = desk.begin()
    desk.fetcher.discovered.token_endpoint = "http://127.0.0.1:1/token"  # type: ignore[union-attr]
    with pytest.raises(Overloaded, match="cannot be asked"):
        await desk.sign_in.finish(cookie, {"code": "c", "state": asked["state"]}, NOW)


async def test_few_codes_are_exchanged_at_a_time(desk: Desk) -> None:
    desk.sign_in._exchanges = MOST_CODES
    with pytest.raises(Overloaded, match="many people"):
        await desk.finish()
    assert desk.fake.forms == []


async def test_signing_out_leads_to_the_issuer_and_back(desk: Desk) -> None:
    url = desk.sign_in.leave("company")
    assert url.startswith(f"{desk.fake.url}/end?client_id={CLIENT}&")
    assert "post_logout_redirect_uri=https%3A%2F%2Fpush.example.org%2Fdashboard%2Flogin" in url
    desk.fake.document = {"end_session_endpoint": ""}
    await desk.fetcher.fetch()
    with pytest.raises(NotFound):
        desk.sign_in.leave("company")


@pytest.mark.parametrize("name", ["", "other", "https://evil.example.org"])
async def test_nobody_signs_in_elsewhere(desk: Desk, name: str) -> None:
    for way in (lambda: desk.sign_in.begin(name, NOW), lambda: desk.sign_in.leave(name)):
        with pytest.raises(NotFound):
            way()


@pytest.mark.parametrize(
    "document",
    [
        {"authorization_endpoint": ""},
        {"token_endpoint": ""},
        {"token_endpoint": "file:///etc/passwd"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"end_session_endpoint": "javascript:alert(1)"},
    ],
)
async def test_a_document_that_leads_astray_is_not_used(
    fake: FakeProvider, clock: Hands, document: dict[str, Any]
) -> None:
    fake.document = document
    desk = Desk(fake, clock)
    await desk.fetcher.fetch()
    assert desk.trusted.issuers[0].problem
    with pytest.raises(LasthopError):
        desk.begin()


def test_the_doctor_says_whether_people_can_sign_in(tmp_path: Path) -> None:
    with providing_beside(lambda: NOW) as fake:
        place = tmp_path / "secret"
        found = issuer(
            url=fake.url,
            audience="",
            client_id=CLIENT,
            client_secret_file=str(place),
            public_url="https://push.example.org",
        )
        assert "no secret" in list(issuers([found]))[-1].found
        place.write_text("secret")
        place.chmod(0o644)
        assert "anybody reads" in list(issuers([found]))[-1].found
        place.chmod(0o600)
        assert "PKCE" in list(issuers([found]))[-1].found
        fake.document = {"code_challenge_methods_supported": ["plain", "S256"]}
        assert "https://push.example.org/dashboard/sign-in/done" in list(issuers([found]))[-1].found
