"""Devices as things to administer, and what becomes of what was meant for them."""

from __future__ import annotations

import pytest

from lasthop.core.apps.credentials import Scope
from lasthop.core.lifecycle import State
from lasthop.core.registry import DeviceRecord, hash_token
from lasthop.errors import Conflict, NotFound
from lasthop.wire.hop.frames import CloseCode
from tests.core.rig import APP, BEST_EFFORT, Rig, to


class TestRemoving:
    def test_gives_up_what_was_meant_for_the_device_and_says_what_is_true(self, rig: Rig) -> None:
        channel = rig.connect()
        (sent,) = rig.publish(to("phone"))
        rig.run()
        waiting, leaving = rig.publish(
            to("phone", deliver_after=rig.now + 5), to("phone", **BEST_EFFORT)
        )
        rig.settle()
        rig.gateway.admin.remove(APP, "phone", rig.now)
        rig.run()
        assert rig.state(sent) is State.TIMED_OUT
        assert rig.state(waiting) is rig.state(leaving) is State.UNDELIVERABLE
        assert [(d.channel, d.code) for d in rig.disconnected] == [
            (channel, CloseCode.UNKNOWN_DEVICE)
        ]
        assert rig.gateway.deliveries.items == {}
        rig.pass_time(100)
        assert list(rig.store.open().devices) == []
        assert list(rig.store.open().sessions) == []

    def test_leaves_other_devices_alone(self, rig: Rig) -> None:
        rig.lose(rig.connect("a"))
        rig.lose(rig.connect("b"))
        (key,) = rig.publish(to("app:"))
        rig.run()
        rig.gateway.admin.remove(APP, "a", rig.now)
        rig.run()
        states = [State(row.state) for row in rig.store.deliveries(key)]
        assert states == [State.UNDELIVERABLE, State.PENDING]

    def test_makes_room_for_a_new_device_of_the_same_name(self, rig: Rig) -> None:
        rig.connect()
        rig.publish(to("phone", b"old"))
        rig.run()
        rig.gateway.admin.remove(APP, "phone", rig.now)
        with pytest.raises(NotFound):
            rig.publish(to("phone"))
        channel = rig.connect()
        assert rig.messages(channel) == []
        assert rig.welcome(channel).epoch == 1

    def test_of_nobody_is_refused(self, rig: Rig) -> None:
        with pytest.raises(NotFound):
            rig.gateway.admin.remove(APP, "phone", rig.now)


class TestChanging:
    def test_a_name_is_given_once(self, rig: Rig) -> None:
        rig.gateway.admin.register(APP, "phone", DeviceRecord(), rig.now)
        with pytest.raises(Conflict):
            rig.gateway.admin.register(APP, "phone", DeviceRecord(), rig.now)
        rig.gateway.admin.register("other", "phone", DeviceRecord(), rig.now)

    def test_who_holds_the_old_token_is_sent_away(self, rig: Rig) -> None:
        rig.gateway.admin.register(APP, "phone", DeviceRecord(token_hash=hash_token("a")), rig.now)
        channel = rig.connect(token="a")
        rig.gateway.admin.amend(APP, "phone", rig.now, token_hash=hash_token("b"))
        rig.run()
        assert [(d.channel, d.code) for d in rig.disconnected] == [
            (channel, CloseCode.UNAUTHORIZED)
        ]
        assert rig.welcome(rig.connect(token="b")).epoch == 2

    def test_a_device_is_found_under_its_new_user_and_not_its_old_one(self, rig: Rig) -> None:
        rig.gateway.admin.register(APP, "phone", DeviceRecord(user="ann"), rig.now)
        rig.gateway.admin.amend(APP, "phone", rig.now, user="bob")
        with pytest.raises(NotFound):
            rig.publish(to("user:ann"))
        rig.run()
        rig.crash()
        assert rig.publish(to("user:bob"))

    def test_a_field_that_does_not_exist_changes_nothing(self, rig: Rig) -> None:
        rig.gateway.admin.register(APP, "phone", DeviceRecord(user="ann"), rig.now)
        with pytest.raises(TypeError):
            rig.gateway.admin.amend(APP, "phone", rig.now, user="bob", colour="red")
        assert rig.publish(to("user:ann"))


class TestCredentials:
    def test_are_durable_and_kept_as_hashes(self, rig: Rig) -> None:
        rig.gateway.admin.admit("secret", APP, "shop", {Scope.PUBLISH, Scope.ADMIN}, rig.now)
        rig.run(flush=False)
        rig.crash()
        row = rig.gateway.credentials.find("secret")
        assert row is not None
        assert (row.app, row.name, row.scopes) == (APP, "shop", "admin publish")
        assert b"secret" not in row.hash

    def test_that_are_dismissed_are_not_accepted(self, rig: Rig) -> None:
        rig.gateway.admin.admit("secret", APP, "shop", {Scope.PUBLISH}, rig.now)
        assert rig.gateway.admin.dismiss(APP, "shop") == 1
        rig.run(flush=False)
        rig.crash()
        assert rig.gateway.credentials.find("secret") is None
        assert [row.revoked for row in rig.gateway.credentials.of(APP)] == [True]
        with pytest.raises(NotFound):
            rig.gateway.admin.dismiss(APP, "shop")
