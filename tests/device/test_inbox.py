"""What every inbox promises, whatever keeps it: a change is kept whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace

from lasthop.device.change import (
    BUDGETS,
    PREFERENCES,
    Change,
    InboxRow,
    IncomingLaneNumbers,
    LaneRow,
    OutboxRow,
    OutgoingLaneNumbers,
    SessionNumbers,
)
from lasthop.device.inbox_memory import MemoryInbox
from lasthop.device.inbox_sqlite import SqliteInbox
from lasthop.device.packing import pack, unpack
from lasthop.errors import StoreBroken
from lasthop.message import Handling, Reliability
from lasthop.wire.hop.frames import Headers, MessageFrame

AnyInbox: TypeAlias = MemoryInbox | SqliteInbox
Again: TypeAlias = Callable[[AnyInbox], AnyInbox]


class Drive:
    """An inbox, and how its next life begins."""

    def __init__(self, inbox: AnyInbox, again: Again) -> None:
        self.inbox = inbox
        self._again = again

    def again(self) -> AnyInbox:
        self.inbox = self._again(self.inbox)
        return self.inbox


@pytest.fixture(params=["memory", "sqlite"])
def drive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Drive]:
    def reopen(inbox: AnyInbox) -> AnyInbox:
        inbox.close()
        return SqliteInbox(tmp_path / "inbox.db")

    def crash(inbox: AnyInbox) -> AnyInbox:
        assert isinstance(inbox, MemoryInbox)
        return inbox.crash()

    if request.param == "memory":
        drive = Drive(MemoryInbox(), crash)
    else:
        drive = Drive(SqliteInbox(tmp_path / "inbox.db"), reopen)
    yield drive
    drive.inbox.close()


def message(key: int, body: bytes = b"body") -> MessageFrame:
    return MessageFrame(None, key, None, None, body)


def row(position: int, number: int | None, *, default_type: str | None = None) -> InboxRow:
    return InboxRow(position, number, message(100 + position), default_type)


def test_a_new_inbox_is_empty(drive: Drive) -> None:
    held = drive.inbox.load()
    assert held.state == SessionNumbers()
    assert (held.inbox, held.outbox, held.old_keys, held.young_keys) == ([], [], [], [])


def test_a_change_survives(drive: Drive) -> None:
    state = SessionNumbers(
        incarnation=b"12345678",
        epoch=3,
        base=7,
        received=2,
        delivered=1,
        dropped=((0, 1),),
        offered=8,
        assigned=4,
        accepted=2,
        last_key=99,
        generation=0,
    )
    change = Change(
        n=1,
        state=state,
        stored=[row(8, 1, default_type="text/x"), row(7, 0)],
        keys=[5, 2**62],
        queued=[OutboxRow(2, message(51)), OutboxRow(3, message(52, b""))],
    )
    drive.inbox.apply(change)
    held = drive.again().load()
    assert held.state == state
    assert held.inbox == [row(7, 0), row(8, 1, default_type="text/x")]
    assert held.outbox == [OutboxRow(2, message(51)), OutboxRow(3, message(52, b""))]
    assert held.young_keys == [5, 2**62]


def test_rows_are_removed_detached_adopted_and_renumbered(drive: Drive) -> None:
    drive.inbox.apply(
        Change(
            n=1,
            state=SessionNumbers(),
            stored=[row(n, n) for n in range(6)],
            queued=[OutboxRow(n, message(50 + n)) for n in range(4)],
        )
    )
    drive.inbox.apply(
        Change(
            n=2,
            state=SessionNumbers(epoch=2, incarnation=b"12345678"),
            detached=True,
            stored=[row(9, 0)],
            adopted=[(0, 4, 0, 1)],
            removed={0: [0, 1, 3, 77]},
            renumbered=[(52, 0, 0), (53, 0, 1)],
            taken=[50, 51, 77],
        )
    )
    held = drive.again().load()
    assert [(r.position, r.number) for r in held.inbox] == [(2, None), (4, 1), (5, None), (9, 0)]
    assert [(r.frame.key, r.number) for r in held.outbox] == [(52, 0), (53, 1)]


def test_lanes_survive_each_with_its_own_positions(drive: Drive) -> None:
    second = replace(row(0, 0), lane=2, numbered_in=2)
    adopted = replace(row(1, None), lane=2)
    coming = IncomingLaneNumbers(base=3, received=1, offered=1, skipped=((4, 5),))
    sending = OutgoingLaneNumbers(queue="bulk", priority=1, assigned=2, accepted=1)
    lanes = [LaneRow(incoming=False, id=4, numbers=sending), LaneRow(True, 2, coming)]
    drive.inbox.apply(
        Change(
            n=1,
            state=SessionNumbers(),
            stored=[row(0, 0), second, adopted],
            queued=[OutboxRow(1, message(51), 4)],
            lanes=lanes,
        )
    )
    drive.inbox.apply(
        Change(n=2, state=SessionNumbers(), adopted=[(2, 1, 4, 7)], removed={0: [0], 6: [0]})
    )
    held = drive.again().load()
    assert held.inbox == [second, replace(adopted, numbered_in=4, number=7)]
    assert held.lanes == lanes
    assert held.outbox == [OutboxRow(1, message(51), 4)]
    gone = LaneRow(incoming=True, id=2, numbers=None)
    drive.inbox.apply(Change(n=3, state=SessionNumbers(), lanes=[gone], renumbered=[(51, 6, 0)]))
    held = drive.again().load()
    assert held.lanes == lanes[:1]
    assert held.outbox == [OutboxRow(0, message(51), 6)]


def test_a_new_epoch_moves_everything_to_lane_0(drive: Drive) -> None:
    there = [replace(row(n, n), lane=2, numbered_in=2) for n in range(3)]
    coming = LaneRow(incoming=True, id=2, numbers=IncomingLaneNumbers(received=3))
    drive.inbox.apply(
        Change(n=1, state=SessionNumbers(), stored=[row(5, 0), *there], lanes=[coming])
    )
    again = replace(row(0, 0), lane=2, numbered_in=2)
    drive.inbox.apply(
        Change(
            n=2,
            state=SessionNumbers(before=9),
            detached=True,
            moved=[(2, 0, None), (0, 5, 7), (2, 1, 6), (2, 2, 8)],
            stored=[again],
            lanes=[coming],
            removed={0: [8]},
        )
    )
    held = drive.again().load()
    assert [(r.lane, r.position, r.number, r.frame.key) for r in held.inbox] == [
        (0, 6, None, 101),
        (0, 7, None, 105),
        (2, 0, 0, 100),
    ]
    assert held.lanes == [coming]


def test_keys_are_kept_for_two_generations(drive: Drive) -> None:
    for generation in range(4):
        state = SessionNumbers(generation=generation)
        drive.inbox.apply(Change(n=generation, state=state, keys=[generation, generation + 10]))
    held = drive.again().load()
    assert (held.old_keys, held.young_keys) == ([2, 12], [3, 13])


def test_a_leap_over_generations_forgets_both(drive: Drive) -> None:
    drive.inbox.apply(Change(n=1, state=SessionNumbers(), keys=[1]))
    drive.inbox.apply(Change(n=2, state=SessionNumbers(generation=5), keys=[2]))
    held = drive.again().load()
    assert (held.old_keys, held.young_keys) == ([], [2])


def test_a_transaction_keeps_notes_and_change_together(drive: Drive) -> None:
    with drive.inbox.transaction() as transaction:
        assert transaction.get("total") is None
        transaction.put("total", b"1")
        transaction.put("total", b"2")
        assert transaction.get("total") == b"2"
        transaction.apply(Change(n=1, state=SessionNumbers(received=1)))
    inbox = drive.again()
    assert inbox.load().state.received == 1
    with inbox.transaction() as transaction:
        assert transaction.get("total") == b"2"


def test_the_sessions_own_notes_come_with_its_change_and_come_back(drive: Drive) -> None:
    drive.inbox.apply(Change(n=1, state=SessionNumbers(), notes={PREFERENCES: b"w", BUDGETS: b"b"}))
    drive.inbox.apply(Change(n=2, state=SessionNumbers(), notes={BUDGETS: b"c"}))
    with drive.inbox.transaction() as transaction:
        transaction.put("the application's", b"own")
    assert drive.again().load().notes == {PREFERENCES: b"w", BUDGETS: b"c"}
    drive.inbox.apply(Change(n=3, state=SessionNumbers(), notes={PREFERENCES: b"", BUDGETS: b""}))
    assert drive.again().load().notes == {}


def test_a_transaction_that_raises_leaves_nothing(drive: Drive) -> None:
    def fail() -> None:
        with drive.inbox.transaction() as transaction:
            transaction.put("total", b"1")
            transaction.apply(Change(n=1, state=SessionNumbers(received=1), stored=[row(0, 0)]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    inbox = drive.again()
    assert (inbox.load().state.received, inbox.load().inbox) == (0, [])
    with inbox.transaction() as transaction:
        assert transaction.get("total") is None


def test_an_attempt_that_raises_is_undone_alone(drive: Drive) -> None:
    with drive.inbox.transaction() as transaction:
        with transaction.attempt():
            transaction.put("first", b"1")
        with suppress(ZeroDivisionError), transaction.attempt():
            transaction.put("first", b"2")
            transaction.put("second", b"2")
            raise ZeroDivisionError
        with transaction.attempt():
            transaction.put("third", b"3")
    with drive.again().transaction() as transaction:
        assert [transaction.get(name) for name in ("first", "second", "third")] == [
            b"1",
            None,
            b"3",
        ]


def test_a_closed_inbox_says_so(drive: Drive) -> None:
    drive.inbox.close()
    drive.inbox.close()
    with pytest.raises(StoreBroken, match=r"^the inbox is closed$"):
        drive.inbox.load()
    with pytest.raises(StoreBroken, match=r"^the inbox is closed$"):
        drive.inbox.apply(Change(n=1, state=SessionNumbers()))


TEXT = st.text(max_size=20)
HEADERS = st.builds(
    Headers,
    content_type=st.none() | TEXT,
    priority=st.integers(0, 9),
    deliver_within=st.none() | st.integers(0, 2**40),
    in_reply_to=st.none() | st.integers(0, 2**62),
    reply_within=st.none() | st.integers(0, 2**40),
    operation=st.integers(0, 255),
    handling=st.sampled_from(Handling),
    reliability=st.sampled_from(Reliability),
    title=st.none() | TEXT,
    rank=st.floats(allow_nan=False, allow_infinity=False),
    source=st.none() | TEXT,
    to=st.none() | TEXT,
    redelivered=st.booleans(),
    extra=st.lists(st.tuples(TEXT, TEXT), max_size=3).map(tuple),
    queue=st.none() | TEXT,
    correlation=st.none() | st.integers(0, 2**62),
)
FRAMES = st.builds(
    MessageFrame,
    st.none(),
    st.none() | st.integers(0, 2**63 - 1),
    st.none() | TEXT,
    st.none() | HEADERS,
    st.binary(max_size=50),
)


@given(frame=FRAMES)
def test_a_frame_comes_back_from_the_disk_as_it_was(frame: MessageFrame) -> None:
    back = unpack(pack(frame))
    assert back == frame
    if back.headers is not None:
        assert isinstance(back.headers.reliability, Reliability)
        assert isinstance(back.headers.handling, Handling)
