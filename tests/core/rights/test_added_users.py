"""Users that were added: their scopes and roles, and who is blocked."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from lasthop.core.apps.credentials import Scope
from lasthop.core.registry import DeviceRecord, hash_token
from lasthop.core.rights import added_users
from lasthop.core.rights.added_users import UserRecord
from lasthop.core.rights.rule import AccessRule, Verb
from lasthop.errors import Conflict, Forbidden, NotFound, QuotaExceeded
from lasthop.wire.hop.frames import CloseCode, Hello
from tests.core.rig import APP, Rig
from tests.core.rights.test_people import InApp, may, shows

NEWS = AccessRule(name="news", who=("role:ops",), allow=(Verb.PUBLISH,), on=("topic:news",))
ANNA = UserRecord(app=APP, name="anna")


class Vouching(InApp):
    """Vouches for users who must have been added, if it is told so."""

    added_only = False

    def verify(self, token: str, now: int):  # type: ignore[no-untyped-def]
        return replace(super().verify(token, now), added_only=self.added_only)


@pytest.fixture
def tokens() -> Vouching:
    return Vouching()


@pytest.fixture
def rig(tokens: Vouching) -> Rig:
    return Rig(rules=(NEWS,), tokens=tokens)


def change(rig: Rig, **changes: object) -> None:
    found = msgspec.structs.replace(rig.gateway.users.named(APP, "anna"), **changes)
    rig.gateway.admin.change_user(found, rig.now)
    rig.run()


def test_a_role_that_was_given_here_counts_in_rules(rig: Rig) -> None:
    assert not may(rig, shows(rig, "eyJ.anna.60"))
    rig.gateway.users.add(msgspec.structs.replace(ANNA, roles=frozenset({"ops"})))
    assert may(rig, shows(rig, "eyJ.anna.60"))
    assert not may(rig, shows(rig, "eyJ.berta.60"))
    change(rig, roles=frozenset())
    assert not may(rig, shows(rig, "eyJ.anna.60"))


def test_a_scope_that_was_given_here_adds_to_those_of_the_issuer(rig: Rig) -> None:
    rig.gateway.users.add(msgspec.structs.replace(ANNA, scopes=frozenset({Scope.ADMIN})))
    people = rig.gateway.people
    found = people.present(people.read("eyJ.anna.60", rig.now), rig.now)
    assert found.scopes == {Scope.ADMIN, Scope.RULES}
    assert may(rig, f"publisher:{found.name}")
    other = people.present(people.read("eyJ.berta.60", rig.now), rig.now)
    assert other.scopes == {Scope.RULES}


def test_a_blocked_user_is_not_let_in(rig: Rig) -> None:
    rig.gateway.users.add(msgspec.structs.replace(ANNA, roles=frozenset({"ops"})))
    people = rig.gateway.people
    token = people.read("eyJ.anna.60", rig.now)
    assert may(rig, f"publisher:{people.present(token, rig.now).name}")
    change(rig, blocked=True)
    with pytest.raises(Forbidden, match="blocked"):
        people.present(token, rig.now)
    assert not may(rig, "publisher:user/anna")
    change(rig, blocked=False)
    people.present(token, rig.now)


def test_users_of_another_app_are_others(rig: Rig) -> None:
    rig.gateway.users.add(UserRecord(app="other", name="anna", blocked=True))
    shows(rig, "eyJ.anna.60")


def test_an_issuer_may_let_in_only_who_was_added(rig: Rig, tokens: Vouching) -> None:
    tokens.added_only = True
    with pytest.raises(Forbidden, match="not added"):
        shows(rig, "eyJ.anna.60")
    rig.gateway.users.add(ANNA)
    shows(rig, "eyJ.anna.60")
    rig.gateway.admin.remove_user(APP, "anna", rig.now)
    with pytest.raises(Forbidden, match="not added"):
        shows(rig, "eyJ.anna.60")


@pytest.mark.parametrize("removed", [False, True])
def test_the_devices_of_a_blocked_user_are_disconnected(
    rig: Rig, tokens: Vouching, removed: bool
) -> None:
    record = DeviceRecord(token_hash=hash_token("own"), user="anna")
    rig.gateway.admin.register(APP, "phone", record, rig.now)
    rig.gateway.admin.register(APP, "tablet", record, rig.now)
    rig.gateway.users.add(ANNA)
    for channel, name, token in ((5, "phone", "eyJ.anna.60"), (6, "tablet", "own")):
        hello = Hello(app=APP, device=name, token=token)
        rig.gateway.frames_received(channel, [hello], rig.now)
        rig.run()
    if removed:
        rig.gateway.admin.remove_user(APP, "anna", rig.now)
    else:
        change(rig, blocked=True)
    rig.run()
    assert [CloseCode(c.code) for c in rig.disconnected] == [CloseCode.UNAUTHORIZED]
    assert rig.gateway.contacts.session(5) is None
    assert rig.gateway.contacts.session(6) is not None
    if not removed:
        hello = Hello(app=APP, device="phone", token="eyJ.anna.60")
        rig.gateway.frames_received(7, [hello], rig.now)
        rig.run()
        assert rig.gateway.contacts.session(7) is None


def test_users_are_there_after_a_crash(rig: Rig) -> None:
    full = msgspec.structs.replace(
        ANNA, scopes=frozenset({Scope.ADMIN}), roles=frozenset({"a", "b"}), blocked=True
    )
    rig.gateway.users.add(full)
    rig.gateway.users.add(UserRecord(app=APP, name="berta"))
    rig.run()
    rig.gateway.users.remove(APP, "berta")
    rig.run()
    rig.crash()
    assert rig.gateway.users.of(APP) == [full]


def test_a_user_is_added_once_and_removed_once(rig: Rig) -> None:
    rig.gateway.users.add(ANNA)
    with pytest.raises(Conflict):
        rig.gateway.users.add(ANNA)
    rig.gateway.users.remove(APP, "anna")
    with pytest.raises(NotFound):
        rig.gateway.users.remove(APP, "anna")


def test_there_are_not_more_users_than_memory_is_meant_for(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(added_users, "MAX_USERS", 1)
    rig.gateway.users.add(ANNA)
    with pytest.raises(QuotaExceeded):
        rig.gateway.users.add(UserRecord(app=APP, name="berta"))
