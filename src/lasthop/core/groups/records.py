"""Named groups and queues of an app and their members, which administrators change, or the devices
themselves where a group is open."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lasthop.clock import SECOND, Micros
from lasthop.core.deliveries import Deliveries
from lasthop.core.groups.members import MemberIndex
from lasthop.core.names import check_name
from lasthop.core.session import Session
from lasthop.errors import Forbidden, InvalidRequest, NotFound, QuotaExceeded
from lasthop.events import Kind
from lasthop.message import Target, TargetKind
from lasthop.store.groups import GroupChanges, GroupRow

MAX_GROUPS = 10_000
"""The largest number of groups and queues of an app: all of them are kept in memory, and can be
listed."""

KINDS = frozenset({TargetKind.GROUP, TargetKind.QUEUE})


class GroupRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is stored of a group or a queue besides its members."""

    title: str = ""
    open: bool = True
    """Whether devices may join without an administrator."""
    made_at: Micros = 0
    patience: Micros = 60 * SECOND
    """For a queue, how long a consumer may take over a message before another one gets it. This has
    to be longer than the longest piece of work, or the work is done twice."""
    prefetch: int = 16
    """For a queue, the largest number of messages that a consumer has at a time. A higher number
    makes a slow consumer hoard messages, a lower one makes a fast consumer wait for the next."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(GroupRecord).decode


class GroupRecords:
    """The records of all groups and queues, by app."""

    def __init__(self, deliveries: Deliveries, members: MemberIndex) -> None:
        self._deliveries = deliveries
        self._members = members
        self._records: dict[tuple[str, str], GroupRecord] = {}
        self._count: dict[str, int] = {}

    def restore(self, rows: Iterable[GroupRow]) -> None:
        """Add the groups and queues that the store has."""
        for row in rows:
            self._keep(row.app, row.target, _decode(row.record))

    def find(self, app: str, target: Target) -> GroupRecord | None:
        """Return the record of a group or queue; None if there is none of this name."""
        return self._records.get((app, str(target)))

    def known(self, app: str, target: Target) -> GroupRecord:
        """Return the record of a group or queue; raise an error if there is none."""
        record = self.find(app, target)
        if record is None:
            raise NotFound(f"no such {target.kind}", app=app, name=target.name)
        return record

    def all(self, app: str, kind: TargetKind) -> list[tuple[str, GroupRecord]]:
        """Return the groups or queues of an app, sorted by name."""
        start = f"{kind}:"
        found = [
            (target.removeprefix(start), record)
            for (of, target), record in self._records.items()
            if of == app and target.startswith(start)
        ]
        return sorted(found)

    def make(self, app: str, target: Target, record: GroupRecord, now: Micros) -> bool:
        """Create a group or queue, or change it; return False if nothing changes."""
        check_name(target.name)
        before = self.find(app, target)
        if before is None and self._count.get(app, 0) >= MAX_GROUPS:
            raise QuotaExceeded("too many groups and queues", retry_after=60, limit=MAX_GROUPS)
        record.made_at = now if before is None else before.made_at
        if record == before:
            return False
        self._keep(app, str(target), record)
        self._note(app, target, _encode(record))
        return True

    def remove(self, app: str, target: Target) -> None:
        """Remove a group or queue after all its members have left."""
        del self._records[app, str(target)]
        self._count[app] -= 1
        self._note(app, target, b"")

    def join(self, session: Session, target: Target, now: Micros, *, by_itself: bool) -> bool:
        """Add a device to a group or queue; return False if it was a member. A group that does not
        exist is created by the first device that joins."""
        device = session.device
        record = self.find(device.app, target)
        if record is not None and not record.open and by_itself:
            raise Forbidden(
                f"only an administrator can add members to this {target.kind}", name=target.name
            )
        most = self._deliveries.limits.memberships_per_device
        if len(device.record.memberships) >= most and str(target) not in device.record.memberships:
            raise QuotaExceeded("too many groups and queues", retry_after=60, limit=most)
        if record is None:
            self.make(device.app, target, GroupRecord(), now)
        if not self._members.join(device, target):
            return False
        self._changed(session, Kind.JOINED, target, now)
        return True

    def leave(self, session: Session, target: Target, now: Micros) -> bool:
        """Remove a device from a group or queue; return False if it was not a member."""
        check_name(target.name)
        if not self._members.leave(session.device, target):
            return False
        self._changed(session, Kind.LEFT, target, now)
        return True

    def _changed(self, session: Session, kind: Kind, target: Target, now: Micros) -> None:
        device = session.device
        self._deliveries.commits.open.devices[device.number] = device.row()
        self._deliveries.commits.record(kind, now, session, target=str(target))
        self._deliveries.commits.hurry()

    def _keep(self, app: str, target: str, record: GroupRecord) -> None:
        if (app, target) not in self._records:
            self._count[app] = self._count.get(app, 0) + 1
        self._records[app, target] = record

    def _note(self, app: str, target: Target, record: bytes) -> None:
        row = GroupRow(app, str(target), record)
        self._deliveries.commits.open.of(GroupChanges).records[app, str(target)] = row
        self._deliveries.commits.hurry()


def parse_group(text: str | None) -> Target:
    """Return the target that `group:NAME` or `queue:NAME` stands for, or raise an error."""
    kind, colon, name = (text or "").partition(":")
    if not colon or kind not in KINDS:
        raise InvalidRequest("name a group or a queue: group:NAME or queue:NAME", target=text)
    return Target(TargetKind(kind), check_name(name))
