"""Users who come with signed tokens: their newest token decides, and rules are about them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lasthop.clock import SECOND
from lasthop.core.apps.credentials import Scope
from lasthop.core.registry import DeviceRecord, hash_token
from lasthop.core.rights.people import MAX_PEOPLE, People, looks_signed
from lasthop.core.rights.rights import NoRight
from lasthop.core.rights.rule import AccessRule, Verb
from lasthop.errors import InvalidRequest, Unauthorized
from lasthop.message import Target, TargetKind
from lasthop.wire.hop.frames import CloseCode, Hello
from tests.core.rig import APP, START, Rig
from tests.runtime.issuers.signing import Vouching

NEWS = Target(TargetKind.TOPIC, "news")


class InApp(Vouching):
    """Vouches for users of the app of the rig."""

    def verify(self, token: str, now: int):  # type: ignore[no-untyped-def]
        return replace(super().verify(token, now), app=APP)


def rules(*found: AccessRule, scopes: frozenset[Scope] = frozenset({Scope.RULES})) -> Rig:
    return Rig(rules=found, tokens=InApp(scopes))


def shows(rig: Rig, secret: str) -> str:
    """Who somebody is that shows a token: the source of its messages."""
    people = rig.gateway.people
    token = people.present(people.read(secret, rig.now), rig.now)
    return f"publisher:{token.name}"


def may(rig: Rig, source: str, target: Target = NEWS) -> bool:
    rights = rig.gateway.deliveries.rights
    assert rights is not None
    try:
        rights.check_message(APP, source, target)
    except NoRight:
        return False
    return True


def allow(*who: str, on: str = "topic:news") -> AccessRule:
    return AccessRule(name=f"on {on}", who=who, allow=(Verb.PUBLISH,), on=(on,))


def test_a_user_may_do_what_rules_allow_and_nothing_else() -> None:
    rig = rules(allow("user:anna"))
    assert may(rig, shows(rig, "eyJ.anna.60"))
    assert not may(rig, shows(rig, "eyJ.anna.60"), Target(TargetKind.TOPIC, "other"))
    assert not may(rig, shows(rig, "eyJ.berta.60"))


def test_a_role_gives_rights_to_its_users() -> None:
    rig = rules(allow("role:o*s"))
    assert may(rig, shows(rig, "eyJ.anna+ops.60"))
    assert not may(rig, shows(rig, "eyJ.berta+dev.60"))


def test_everybody_is_everybody_and_credentials_are_not_users() -> None:
    deny = AccessRule(name="d", who=("*",), deny=(Verb.PUBLISH,), on=("topic:news",))
    for found in ([allow("user:anna"), deny], [allow("credential:*")], [allow("device:*")]):
        rig = rules(*found)
        assert not may(rig, shows(rig, "eyJ.anna.60"))


def test_braces_stand_for_the_user_and_not_for_a_device() -> None:
    rig = rules(allow("*", on="topic:home.{user}.#"), allow("*", on="topic:dev.{device}"))
    source = shows(rig, "eyJ.anna.60")
    assert may(rig, source, Target(TargetKind.TOPIC, "home.anna.x"))
    assert not may(rig, source, Target(TargetKind.TOPIC, "home.berta.x"))
    assert not may(rig, source, Target(TargetKind.TOPIC, "dev.{device}"))


def test_a_user_with_a_scope_needs_no_rule_but_is_held_by_those_that_deny() -> None:
    deny = AccessRule(name="d", who=("user:berta",), deny=(Verb.PUBLISH,), on=("topic:news",))
    rig = rules(deny, scopes=frozenset({Scope.PUBLISH}))
    assert may(rig, shows(rig, "eyJ.anna.60"))
    assert not may(rig, shows(rig, "eyJ.berta.60"))


def test_the_newest_token_of_a_user_decides_about_its_roles() -> None:
    rig = rules(allow("role:ops"))
    people = rig.gateway.people
    old = people.read("eyJ.anna+ops.600", rig.now)
    assert may(rig, f"publisher:{people.present(old, rig.now).name}")
    rig.now += SECOND
    shows(rig, "eyJ.anna.600")
    assert people.present(old, rig.now).roles == frozenset()
    assert not may(rig, "publisher:user/anna")


def test_a_token_ends_with_its_time_and_its_key() -> None:
    rig = rules()
    people = rig.gateway.people
    token = people.read("eyJ.anna.60", rig.now)
    people.present(token, rig.now + 59 * SECOND)
    with pytest.raises(Unauthorized, match="expired"):
        people.present(token, rig.now + 60 * SECOND)
    rig.identity.tokens.withdrawn = True  # type: ignore[union-attr]
    with pytest.raises(Unauthorized, match="withdrawn"):
        people.present(token, rig.now)


def test_users_do_not_fill_the_memory() -> None:
    people = People(vouching := Vouching())
    for number in range(MAX_PEOPLE + 10):
        people.present(vouching.verify(f"eyJ.u{number}.60", START), START)
    assert len(people._newest) == MAX_PEOPLE


def test_without_an_issuer_no_token_is_read() -> None:
    people = People(None)
    assert not people.reads("eyJ.anna.60")
    with pytest.raises(Unauthorized):
        people.read("eyJ.anna.60", START)


@pytest.mark.parametrize("secret", ["", "eyJ", "eyJ.x", "eyJ.a.b.c", "abc.def.ghi", "x" * 43])
def test_our_own_tokens_are_not_taken_for_signed_ones(secret: str) -> None:
    assert not looks_signed(secret)


def test_rights_of_a_user_can_be_asked_for() -> None:
    rig = rules(allow("user:anna"))
    assert rig.gateway.rules.explain(APP, "user:anna", Verb.PUBLISH, NEWS).allowed
    assert not rig.gateway.rules.explain(APP, "user:berta", Verb.PUBLISH, NEWS).allowed
    with pytest.raises(InvalidRequest):
        rig.gateway.rules.explain(APP, "user:", Verb.PUBLISH, NEWS)


class TestDevices:
    """A user connects as one of its devices, with a token of the user."""

    @pytest.fixture
    def rig(self) -> Rig:
        rig = rules()
        for name, user in (("phone", "anna"), ("tablet", "berta"), ("lamp", "")):
            record = DeviceRecord(token_hash=hash_token(f"token of {name}"), user=user)
            rig.gateway.admin.register(APP, name, record, rig.now)
        return rig

    def closed(self, rig: Rig) -> CloseCode | None:
        rig.run()
        return CloseCode(rig.disconnected[-1].code) if rig.disconnected else None

    def hello(self, rig: Rig, channel: int, device: str, token: str | None) -> None:
        hello = Hello(app=APP, device=device, token=token)
        rig.gateway.frames_received(channel, [hello], rig.now)

    def test_its_own_user_may(self, rig: Rig) -> None:
        self.hello(rig, 5, "phone", "eyJ.anna.60")
        assert self.closed(rig) is None
        assert rig.gateway.contacts.session(5) is not None

    @pytest.mark.parametrize(
        "device, token",
        [
            ("tablet", "eyJ.anna.60"),
            ("lamp", "eyJ.anna.60"),
            ("lamp", "eyJ..60"),
            ("phone", "eyJ.forged.60"),
            ("phone", "eyJ.anna.0"),
            ("phone", None),
            ("phone", ""),
        ],
    )
    def test_others_may_not(self, rig: Rig, device: str, token: str | None) -> None:
        self.hello(rig, 5, device, token)
        assert self.closed(rig) is CloseCode.UNAUTHORIZED
        assert rig.gateway.contacts.session(5) is None

    def test_contact_ends_with_the_token(self, rig: Rig) -> None:
        self.hello(rig, 5, "phone", "eyJ.anna.60")
        rig.run()
        rig.pass_time(61 * SECOND)
        assert self.closed(rig) is CloseCode.UNAUTHORIZED

    def test_contact_goes_on_with_a_newer_token(self, rig: Rig) -> None:
        self.hello(rig, 5, "phone", "eyJ.anna.60")
        rig.run()
        rig.pass_time(30 * SECOND)
        self.hello(rig, 6, "phone", "eyJ.anna.600")
        rig.run()
        rig.disconnected.clear()
        rig.pass_time(60 * SECOND)
        assert self.closed(rig) is None

    def test_a_stranger_does_not_prolong_it(self, rig: Rig) -> None:
        self.hello(rig, 5, "phone", "eyJ.anna.60")
        rig.run()
        self.hello(rig, 6, "phone", "wrong")
        rig.run()
        rig.disconnected.clear()
        rig.pass_time(61 * SECOND)
        assert rig.gateway.contacts.session(5) is None

    def test_the_device_s_own_token_has_no_end_then(self, rig: Rig) -> None:
        self.hello(rig, 5, "phone", "eyJ.anna.60")
        rig.run()
        self.hello(rig, 6, "phone", "token of phone")
        rig.run()
        rig.disconnected.clear()
        rig.pass_time(61 * SECOND)
        assert self.closed(rig) is None

    def test_a_device_that_is_given_away_is_not_its_former_user_s(self, rig: Rig) -> None:
        self.hello(rig, 5, "phone", "eyJ.anna.60")
        rig.run()
        rig.gateway.admin.amend(APP, "phone", rig.now, user="berta")
        assert self.closed(rig) is CloseCode.UNAUTHORIZED
        assert rig.gateway.contacts.session(5) is None
