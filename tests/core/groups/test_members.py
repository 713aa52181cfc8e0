"""Groups: who is in them, who may be, and what goes to all of them."""

from __future__ import annotations

import pytest

from lasthop.core.groups.records import GroupRecord
from lasthop.core.limits import Limits
from lasthop.errors import Forbidden, NotFound, QuotaExceeded
from lasthop.message import Binding, Target, TargetKind
from lasthop.store.groups import GroupMessageRow
from lasthop.wire.hop.frames import (
    Headers,
    MessageFrame,
    Operation,
)
from tests.core.groups.crew import CREW, JOBS, Crew
from tests.core.rig import APP, to


def test_a_group_message_goes_to_its_members_and_names_the_group(rig: Crew) -> None:
    one, two = rig.gather("one", "two")
    outside = rig.connect("three")
    rig.publish(to("group:crew"))
    rig.run()
    for channel in (one, two):
        (frame,) = rig.messages(channel)
        assert frame.headers is not None
        assert (frame.headers.group, frame.headers.binding) == ("crew", Binding.NONE)
    assert not rig.messages(outside)


def test_membership_is_frozen_at_acceptance_across_a_crash() -> None:
    rig = Crew(Limits(fanout_batch=1))
    rig.gather("one", "two", "three")
    (key,) = rig.publish(to("group:crew"))
    rig.run_commits(1)
    rig.gateway.groups.leave(APP, "three", CREW, rig.now)
    rig.gateway.groups.join(APP, "one", Target(TargetKind.GROUP, "other"), rig.now)
    rig.run_commits(1)
    rig.crash()
    rig.run()
    assert len(rig.store.deliveries(key)) == 3
    assert not rig.store.find(GroupMessageRow, [key])[key].open


def test_a_group_that_nobody_is_in_is_not_written_to(rig: Crew) -> None:
    with pytest.raises(NotFound, match="nobody is in this group"):
        rig.publish(to("group:nobody"))


def test_groups_survive_a_restart_and_a_removed_device_is_in_none(rig: Crew) -> None:
    rig.gather("one", "two")
    rig.crash()
    assert len(rig.gateway.groups.members.of(APP, CREW)) == 2
    rig.gateway.admin.remove(APP, "one", rig.now)
    rig.run()
    rig.crash()
    assert [d.name for d in rig.gateway.groups.members.of(APP, CREW).values()] == ["two"]
    assert rig.gateway.groups.remove(APP, CREW, rig.now) == 1
    rig.run()
    rig.crash()
    assert rig.gateway.groups.records.find(APP, CREW) is None
    with pytest.raises(NotFound, match="no such group"):
        rig.gateway.groups.remove(APP, CREW, rig.now)


def test_a_closed_group_takes_nobody_by_itself(rig: Crew) -> None:
    rig.gateway.groups.make(APP, CREW, GroupRecord(open=False), rig.now)
    rig.connect("one")
    session = rig.gateway.deliveries.named(APP, "one")
    with pytest.raises(Forbidden, match="only an administrator can add members to this group"):
        rig.gateway.groups.records.join(session, CREW, rig.now, by_itself=True)
    assert rig.gateway.groups.join(APP, "one", CREW, rig.now)
    assert not rig.gateway.groups.join(APP, "one", CREW, rig.now)


def test_devices_join_and_leave_by_themselves(rig: Crew) -> None:
    channel = rig.connect("one")
    rig.hear(channel, MessageFrame(0, 1, None, Headers(operation=Operation.JOIN, to="group:crew")))
    assert rig.gateway.groups.members.of(APP, CREW)
    rig.hear(channel, MessageFrame(1, 2, None, Headers(operation=Operation.LEAVE, to="group:crew")))
    assert not rig.gateway.groups.members.of(APP, CREW)


@pytest.mark.parametrize("target", [None, "device:one", "group:", "group:a b", "crew"])
def test_what_cannot_be_joined_is_refused(rig: Crew, target: str | None) -> None:
    channel = rig.connect("one")
    rig.hear(channel, MessageFrame(0, 1, None, Headers(operation=Operation.JOIN, to=target)))
    (refusal,) = rig.messages(channel)
    assert b"invalid_request" in refusal.body


def test_a_device_is_in_so_many_groups_at_most() -> None:
    rig = Crew(Limits(memberships_per_device=1))
    rig.gather("one")
    with pytest.raises(QuotaExceeded, match="too many groups"):
        rig.gateway.groups.join(APP, "one", JOBS, rig.now)
