"""Named groups and queues of an app, and who belongs to them: by an administrator's word, or by the
devices' own where that is open to them."""

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
"""Groups and queues of an app: they are kept in memory, and listed."""

KINDS = frozenset({TargetKind.GROUP, TargetKind.QUEUE})


class GroupRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is known of a group or a queue beside its members."""

    title: str = ""
    open: bool = True
    """Whether devices may join by themselves."""
    made_at: Micros = 0
    patience: Micros = 60 * SECOND
    """Of a queue: how long a consumer may take over a message before another one gets it. Longer
    than the longest piece of work, or that is done twice."""
    prefetch: int = 16
    """Of a queue: messages that a consumer has at a time. More make a slow one hoard them, fewer
    make a fast one wait for the next."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(GroupRecord).decode


class GroupRecords:
    """All groups and queues."""

    def __init__(self, deliveries: Deliveries, members: MemberIndex) -> None:
        self._deliveries = deliveries
        self._members = members
        self._records: dict[tuple[str, str], GroupRecord] = {}
        self._count: dict[str, int] = {}

    def restore(self, rows: Iterable[GroupRow]) -> None:
        """As the store has them."""
        for row in rows:
            self._keep(row.app, row.target, _decode(row.record))

    def find(self, app: str, target: Target) -> GroupRecord | None:
        """A group or queue, if there is one of this name."""
        return self._records.get((app, str(target)))

    def known(self, app: str, target: Target) -> GroupRecord:
        """A group or queue that there must be."""
        record = self.find(app, target)
        if record is None:
            raise NotFound(f"no such {target.kind}", app=app, name=target.name)
        return record

    def all(self, app: str, kind: TargetKind) -> list[tuple[str, GroupRecord]]:
        """Those of an app, by name."""
        start = f"{kind}:"
        found = [
            (target.removeprefix(start), record)
            for (of, target), record in self._records.items()
            if of == app and target.startswith(start)
        ]
        return sorted(found)

    def make(self, app: str, target: Target, record: GroupRecord, now: Micros) -> bool:
        """Let there be a group or queue, or change it; false when it was just so."""
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
        """Let there be none, when everybody has left it."""
        del self._records[app, str(target)]
        self._count[app] -= 1
        self._note(app, target, b"")

    def join(self, session: Session, target: Target, now: Micros, *, by_itself: bool) -> bool:
        """A device belongs to it from now on; false when it did. What nobody has made is made by
        the first who joins."""
        device = session.device
        record = self.find(device.app, target)
        if record is not None and not record.open and by_itself:
            raise Forbidden(f"only an administrator adds to this {target.kind}", name=target.name)
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
        """A device belongs to a group or queue no longer; false when it did not."""
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
    """Read `group:NAME` or `queue:NAME`."""
    kind, colon, name = (text or "").partition(":")
    if not colon or kind not in KINDS:
        raise InvalidRequest("name a group or a queue: group:NAME or queue:NAME", target=text)
    return Target(TargetKind(kind), check_name(name))
