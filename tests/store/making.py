"""Commits for tests, numbered as core would number them."""

from __future__ import annotations

from collections.abc import Iterable

from lasthop.clock import DAY, SECOND, Micros
from lasthop.message import KeyMaker, Message, Target, TargetKind
from lasthop.store.commit import (
    Commit,
    CredentialRow,
    DeliveryRow,
    DeviceRow,
    FanoutRow,
    KeyRow,
    MemoryRow,
    ReplyRow,
    SessionRow,
)
from lasthop.store.groups import GroupChanges, GroupMessageRow, GroupRow
from lasthop.store.pushes import Addressee, AddressRow, NotificationRow, PushChanges, PushRow
from lasthop.store.ranked import FeedRow, KeptRow, RankedChanges, TopicRow

START: Micros = 1_763_200_000 * SECOND
FAR_FUTURE: Micros = START + 10_000 * DAY
PENDING, SENDING, DELIVERED = 0, 1, 7


class Maker:
    """Makes one commit after another; everything in it is told by small numbers."""

    def __init__(self, *, after: int = 0, next_commit: int = 1, next_event: int = 0) -> None:
        self.now = START
        self._keys = KeyMaker(node=0, after=after, random64=lambda: 42)
        self.next_commit = next_commit
        self.next_event = next_event

    def message(self, body: bytes = b"hello", *, name: str = "phone-1") -> Message:
        key = self._keys.key(self.now)
        return Message(
            key, self._keys.salt(), "app", "tests", Target(TargetKind.DEVICE, name), self.now, body
        )

    def messages(self, number: int) -> list[Message]:
        return [self.message(b"body %d" % i) for i in range(number)]

    def commit(
        self,
        messages: Iterable[Message] = (),
        deliveries: Iterable[DeliveryRow] = (),
        *,
        sessions: Iterable[SessionRow] = (),
        devices: Iterable[DeviceRow] = (),
        removed_devices: Iterable[int] = (),
        keys: Iterable[KeyRow] = (),
        replies: Iterable[ReplyRow] = (),
        fanouts: Iterable[FanoutRow] = (),
        credentials: Iterable[CredentialRow] = (),
        memories: Iterable[MemoryRow] = (),
        changes: Iterable[object] = (),
        events: int = 0,
    ) -> Commit:
        commit = Commit(
            n=self.next_commit,
            first_event=self.next_event,
            messages=list(messages),
            deliveries=list(deliveries),
            sessions={row.device: row for row in sessions},
            devices={row.device: row for row in devices},
            removed_devices=list(removed_devices),
            keys=list(keys),
            replies=list(replies),
            fanouts={row.message: row for row in fanouts},
            credentials={row.hash: row for row in credentials},
            memories={(row.device, row.name): row for row in memories},
            changes={type(each): each for each in changes},
            events=bytearray(b"".join(event_line(self.next_event + i) for i in range(events))),
            event_count=events,
        )
        self.next_commit += 1
        self.next_event += events
        return commit

    def accepted(self, *bodies: bytes, device: int = 1) -> Commit:
        """New messages for one device, each with its open delivery and an event."""
        messages = [self.message(body) for body in bodies]
        return self.commit(
            messages, [delivery(message, device) for message in messages], events=len(messages)
        )


def event_line(offset: int) -> bytes:
    return b'{"n":%d,"kind":"accepted"}\n' % offset


def delivery(
    message: Message | int, device: int = 1, state: int = PENDING, *, reply: int = 0
) -> DeliveryRow:
    key = message if isinstance(message, int) else message.key
    return DeliveryRow(
        message=key,
        device=device,
        state=state,
        open=state < DELIVERED,
        epoch=1,
        seq=-1,
        attempts=0,
        changed_at=START,
        last_event=0,
        reply=reply,
    )


def device(number: int, name: str | None = None) -> DeviceRow:
    return DeviceRow(number, "app", name or f"phone-{number}", b"\x00record\xff%d" % number)


def session(number: int, epoch: int = 1) -> SessionRow:
    return SessionRow(number, epoch, assigned=5, received=4, delivered=3, inbound=2, events=9)


def key(name: str, *, at: Micros = START, first: int = 1) -> KeyRow:
    return KeyRow("app", name, b"\xff\x00digest", first, 1, at)


def credential(number: int, *, revoked: bool = False) -> CredentialRow:
    return CredentialRow(bytes([number]) * 32, "app", f"publisher-{number}", "push", START, revoked)


def address(value: str, target: str = "topic:news") -> AddressRow:
    return AddressRow("app", f"USER:{value}", target)


def push(number: int, message: int) -> PushRow:
    """A push whose id is told by a number."""
    addressees = (Addressee("WAPPUSH=a/TYPE=USER@x"), Addressee("b", True, (1, 2), 2003))
    push_id = f"push-{number}@example.org"
    notify_to = "http://pi.example/"
    return PushRow(number.to_bytes(16), message, "app", push_id, addressees, notify_to, "2.1")


def notification(
    message: Message | int, place: int = 0, *, attempts: int = 0, done: bool = False
) -> NotificationRow:
    key = message if isinstance(message, int) else message.key
    row = NotificationRow(key, place, "delivered", 1000, START, "confirmed", START, START, attempts)
    row.done = done
    return row


def pushed(
    *,
    addresses: Iterable[AddressRow] = (),
    pushes: Iterable[PushRow] = (),
    notifications: Iterable[NotificationRow] = (),
) -> PushChanges:
    return PushChanges(
        addresses={(row.app, row.address): row for row in addresses},
        pushes={row.id: row for row in pushes},
        notifications={(row.message, row.place): row for row in notifications},
    )


def ranked(
    *,
    feeds: Iterable[FeedRow] = (),
    kept: Iterable[KeptRow] = (),
    ranks: dict[int, float] | None = None,
    topics: Iterable[TopicRow] = (),
) -> RankedChanges:
    return RankedChanges(
        feeds={(row.device, row.topic, row.part): row for row in feeds},
        kept={(row.message, row.device): row for row in kept},
        ranks=ranks or {},
        topics={(row.app, row.topic): row for row in topics},
    )


def group_messages(
    *, records: Iterable[GroupRow] = (), group_messages: Iterable[GroupMessageRow] = ()
) -> GroupChanges:
    return GroupChanges(
        records={(row.app, row.target): row for row in records},
        group_messages={row.message: row for row in group_messages},
    )


def kept(message: int, device: int, place: int) -> KeptRow:
    return KeptRow(message, device, "news", place, 1.5, None, START, 0, 0)
