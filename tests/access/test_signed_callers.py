"""Callers who show a token that an issuer has signed, at the doors over HTTP.

About `access/callers.py` and `core/rights/people.py`.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace

import pytest

from lasthop.access.callers import CACHED, MAX_SIGNED
from lasthop.access.rest import Door, RestSettings, make_app
from lasthop.clock import SECOND
from lasthop.core.apps.credentials import Scope
from lasthop.core.quota import Rate
from lasthop.core.rights.rule import AccessRule, Verb
from tests.access.knocking import knock, refusal
from tests.access.live import LiveInMemory
from tests.runtime.issuers.signing import Vouching

ANNA = "eyJ.anna+ops.60"
NEWS = {"to": "topic:news", "body": "x"}


@pytest.fixture
def vouching() -> Vouching:
    return Vouching()


@pytest.fixture
def live(vouching: Vouching) -> LiveInMemory:
    live = LiveInMemory(tokens=vouching)
    allow = AccessRule(name="news", who=("role:ops",), allow=(Verb.PUBLISH,), on=("topic:news",))
    live.gateway.rules.add(allow)
    live.turn()
    return live


@pytest.fixture
def closed(live: LiveInMemory) -> Door:
    return make_app(live, RestSettings(messages=Rate(1, 5)))


pytestmark = pytest.mark.usefixtures("both_ways_in")


async def test_a_signed_token_is_a_credential(closed: Door) -> None:
    async with knock(closed, peer="192.0.2.1", token=ANNA) as http:
        sent = await http.post("/v1/messages", json=NEWS)
        assert sent.status_code == 202
        other = await http.post("/v1/messages", json={"to": "topic:other", "body": "x"})
        assert refusal(other) == (403, "no_right", None)
        assert refusal(await http.get("/v1/credentials")) == (403, "forbidden", None)
        assert (await http.get(f"/v1/messages/{sent.json()['id']}")).status_code == 200


async def test_it_may_come_as_a_password(closed: Door) -> None:
    value = b64encode(f"x:{ANNA}".encode()).decode()
    async with knock(closed, peer="192.0.2.1") as http:
        headers = {"authorization": f"Basic {value}"}
        assert (await http.post("/v1/messages", json=NEWS, headers=headers)).status_code == 202


@pytest.mark.parametrize("token", ["eyJ.forged.60", "eyJ.anna+ops.0", "eyJ.anna+ops.-1"])
async def test_what_is_not_believed_is_refused(closed: Door, token: str) -> None:
    async with knock(closed, peer="192.0.2.1", token=token) as http:
        answer = await http.post("/v1/messages", json=NEWS)
        assert refusal(answer) == (401, "unauthorized", None)


async def test_it_is_checked_once_and_ends_all_the_same(
    closed: Door, live: LiveInMemory, vouching: Vouching
) -> None:
    async with knock(closed, peer="192.0.2.1", token=ANNA) as http:
        for _ in range(3):
            assert (await http.post("/v1/messages", json=NEWS)).status_code == 202
        assert vouching.read == 1
        live.time += 60 * SECOND
        answer = await http.post("/v1/messages", json=NEWS)
        assert refusal(answer) == (401, "unauthorized", None)


async def test_a_withdrawn_key_ends_it(closed: Door, vouching: Vouching) -> None:
    async with knock(closed, peer="192.0.2.1", token=ANNA) as http:
        assert (await http.post("/v1/messages", json=NEWS)).status_code == 202
        vouching.withdrawn = True
        answer = await http.post("/v1/messages", json=NEWS)
        assert refusal(answer) == (401, "unauthorized", None)


async def test_a_user_is_no_credential_of_its_name(live: LiveInMemory, closed: Door) -> None:
    """A credential named as a user has none of the user's messages, and no user those of a
    credential."""
    live.gateway.admin.admit("secret", "default", "anna", {Scope.PUBLISH}, live.time)
    live.turn()
    async with (
        knock(closed, peer="192.0.2.1", token=ANNA) as user,
        knock(closed, peer="192.0.2.1", token="secret") as credential,
    ):
        one = (await user.post("/v1/messages", json=NEWS)).json()["id"]
        two = (await credential.post("/v1/messages", json=NEWS)).json()["id"]
        assert (await user.get(f"/v1/messages/{two}")).status_code == 404
        assert (await credential.get(f"/v1/messages/{one}")).status_code == 404


async def test_no_credential_can_have_the_name_of_a_user(closed: Door) -> None:
    live = closed.context.live
    open_door = make_app(live, RestSettings(open_house=True))
    async with knock(open_door) as http:
        answer = await http.post("/v1/credentials", json={"name": "user/anna", "scopes": ["admin"]})
    assert answer.status_code == 400


async def test_quotas_are_per_user(closed: Door) -> None:
    async with knock(closed, peer="192.0.2.1") as http:
        for user, statuses in (("anna", [202] * 5 + [429]), ("berta", [202])):
            for lasts, status in enumerate(statuses, 60):
                headers = {"authorization": f"Bearer eyJ.{user}+ops.{lasts}"}
                answer = await http.post("/v1/messages", json=NEWS, headers=headers)
                assert answer.status_code == status


async def test_users_stay_in_their_app_unless_they_administer(vouching: Vouching) -> None:
    for scopes, status in ((frozenset({Scope.PUBLISH}), 403), (frozenset({Scope.ADMIN}), 202)):
        vouching.scopes = scopes
        live = LiveInMemory(tokens=vouching)
        door = make_app(live, RestSettings())
        async with knock(door, peer="192.0.2.1", token=ANNA, app="other") as http:
            assert (await http.post("/v1/messages", json=NEWS)).status_code == status


async def test_long_tokens_are_read_and_longer_ones_are_not(closed: Door) -> None:
    for length, status in ((6000, 202), (MAX_SIGNED + 1, 401)):
        token = f"eyJ.anna+ops+{'r' * length}.60"
        async with knock(closed, peer="192.0.2.1", token=token) as http:
            assert (await http.post("/v1/messages", json=NEWS)).status_code == status


async def test_many_tokens_do_not_fill_the_memory(closed: Door) -> None:
    callers = closed.context.callers
    for number in range(CACHED + 5):
        callers._credentialed(f"Bearer eyJ.anna+ops.{number + 60}".encode())
    assert len(callers._signed) <= CACHED


async def test_our_own_tokens_are_found_first_and_never_read_as_signed(
    live: LiveInMemory, closed: Door, vouching: Vouching
) -> None:
    live.gateway.admin.admit("plain-secret", "default", "shop", {Scope.PUBLISH}, live.time)
    live.turn()
    async with knock(closed, peer="192.0.2.1", token="plain-secret") as http:
        assert (await http.post("/v1/messages", json=NEWS)).status_code == 202
    assert vouching.read == 0


async def test_a_newer_token_takes_an_administrator_s_scope_away(
    closed: Door, live: LiveInMemory, vouching: Vouching
) -> None:
    vouching.scopes = frozenset({Scope.ADMIN})
    async with knock(closed, peer="192.0.2.1", token="eyJ.anna.600") as http:
        assert (await http.get("/v1/credentials")).status_code == 200
        vouching.scopes = frozenset({Scope.RULES})
        live.time += SECOND
        newer = {"authorization": "Bearer eyJ.anna.601"}
        assert (await http.get("/v1/credentials", headers=newer)).status_code == 403
        assert (await http.get("/v1/credentials")).status_code == 403


def test_a_signed_token_says_whose_it_is() -> None:
    token = Vouching().verify(ANNA, 0)
    assert replace(token, user="x").name == "user/x"
