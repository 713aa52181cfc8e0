"""What every driver promises.

About `store/base.py`.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lasthop.clock import SECOND
from lasthop.errors import StoreBroken
from lasthop.message import MAX_KEY, Message, Target, TargetKind
from lasthop.store.base import Counts, Store
from lasthop.store.commit import FanoutRow, MemoryRow, OpenMessage, ReplyRow
from lasthop.store.groups import GroupChanges
from lasthop.store.pushes import KnownPush, OpenPush, PushesRestored
from lasthop.store.streams import PieceRow, StreamChanges, StreamRow, StreamsRestored
from tests.store.conftest import Driver
from tests.store.making import (
    DELIVERED,
    FAR_FUTURE,
    PENDING,
    SENDING,
    START,
    Maker,
    address,
    credential,
    delivery,
    device,
    event_line,
    key,
    notification,
    push,
    pushed,
    session,
)


def retire_all(store: Store, *, messages_before: int = 0, keys_before: int = 0) -> None:
    start: int | None = 0
    while start is not None:
        start = store.retire(
            messages_before=messages_before, keys_before=keys_before, start=start
        ).next


def erase(store: Store, number: int) -> int:
    start: int | None = 0
    erased = 0
    while start is not None:
        step = store.erase_device(number, start=start)
        erased += step.messages
        start = step.next
    return erased


class TestOpening:
    def test_a_new_store_starts_at_the_beginning(self, driver: Driver) -> None:
        restored = driver.restored
        assert restored.incarnation == 7
        assert (restored.boot, restored.next_commit, restored.next_event) == (1, 1, 0)
        assert (restored.last_key, restored.next_device) == (0, 1)
        assert not list(restored.devices)
        assert not list(restored.open)

    def test_every_opening_is_a_new_boot_of_the_same_incarnation(self, driver: Driver) -> None:
        assert [driver.restart().boot for _ in range(3)] == [2, 3, 4]
        assert driver.restored.incarnation == 7

    def test_everything_comes_back(self, driver: Driver) -> None:
        make = Maker()
        message = make.message()
        commit = make.commit(
            [message],
            [delivery(message, 2), delivery(message, 1)],
            sessions=[session(2), session(1)],
            devices=[device(2), device(1)],
            keys=[key("k")],
            fanouts=[FanoutRow(message.key, 1, 2, done=False)],
            credentials=[credential(2), credential(1, revoked=True)],
            memories=[
                MemoryRow(1, "b", b"\0\xff"),
                MemoryRow(1, "a", b"x"),
                MemoryRow(0, "a", b"y"),
            ],
            events=3,
        )
        driver.store.apply(commit)
        restored = driver.restart()
        assert (restored.next_commit, restored.next_event) == (2, 3)
        assert (restored.last_key, restored.next_device) == (message.key, 3)
        assert list(restored.devices) == [device(1), device(2)]
        assert list(restored.sessions) == [session(1), session(2)]
        assert list(restored.keys) == [key("k")]
        assert list(restored.fanouts) == [FanoutRow(message.key, 1, 2, done=False)]
        assert list(restored.credentials) == [credential(1, revoked=True), credential(2)]
        assert list(restored.memories) == [
            MemoryRow(0, "a", b"y"),
            MemoryRow(1, "a", b"x"),
            MemoryRow(1, "b", b"\0\xff"),
        ]
        rows = [delivery(message, 1), delivery(message, 2)]
        assert list(restored.open) == [OpenMessage(message, rows)]

    def test_a_memory_that_is_empty_is_gone(self, driver: Driver) -> None:
        make = Maker()
        driver.store.apply(make.commit(memories=[MemoryRow(1, "a", b"x"), MemoryRow(2, "a", b"x")]))
        driver.store.apply(make.commit(memories=[MemoryRow(1, "a", b"")]))
        assert list(driver.restart().memories) == [MemoryRow(2, "a", b"x")]

    def test_of_several_commits_at_once_the_last_memory_counts(self, driver: Driver) -> None:
        make = Maker()
        driver.store.apply(
            make.commit(memories=[MemoryRow(1, "a", b"x"), MemoryRow(2, "a", b"x")]),
            make.commit(memories=[MemoryRow(1, "a", b""), MemoryRow(2, "a", b"")]),
            make.commit(memories=[MemoryRow(2, "a", b"y")]),
        )
        assert list(driver.restart().memories) == [MemoryRow(2, "a", b"y")]

    def test_what_is_remembered_is_found_by_its_name(self, driver: Driver) -> None:
        commit = Maker().commit()
        for number, name in ((2, "a"), (1, "b"), (1, "a"), (0, "c")):
            commit.remember(number, name, b"x")
        driver.store.apply(commit)
        restored = driver.restart()
        assert restored.memories_of("a") == [MemoryRow(1, "a", b"x"), MemoryRow(2, "a", b"x")]
        assert [row.device for row in restored.memories_of("b", "c")] == [0, 1]

    def test_a_removed_device_takes_its_memories_along(self, driver: Driver) -> None:
        make = Maker()
        driver.store.apply(make.commit(devices=[device(1)], memories=[MemoryRow(1, "a", b"x")]))
        driver.store.apply(make.commit(removed_devices=[1], memories=[MemoryRow(1, "b", b"x")]))
        assert list(driver.restart().memories) == []

    def test_only_open_deliveries_come_back(self, driver: Driver) -> None:
        make = Maker()
        first, second = make.messages(2)
        rows = [delivery(first, state=DELIVERED), delivery(second, 2)]
        driver.store.apply(make.commit([first, second], [*rows, delivery(second, 1, DELIVERED)]))
        assert list(driver.restart().open) == [OpenMessage(second, [delivery(second, 2)])]

    def test_a_message_comes_back_while_it_is_fanned_out_though_none_of_its_deliveries_is_open(
        self, driver: Driver
    ) -> None:
        make = Maker()
        untouched, busy, done, finished = make.messages(4)
        driver.store.apply(
            make.commit(
                [untouched, busy, done, finished],
                [delivery(busy), delivery(done, state=DELIVERED), delivery(finished)],
                fanouts=[FanoutRow(m.key, 1, 9, done=False) for m in (done, untouched, busy)],
            )
        )
        driver.store.apply(make.commit([], [delivery(finished, state=DELIVERED)]))
        assert list(driver.restart().open) == [
            OpenMessage(untouched, []),
            OpenMessage(busy, [delivery(busy)]),
            OpenMessage(done, []),
        ]

    def test_a_message_comes_back_while_it_is_fanned_out(self, driver: Driver) -> None:
        make = Maker()
        untouched, begun, finished = make.messages(3)
        driver.store.apply(
            make.commit(
                [untouched, begun, finished],
                [delivery(message, 1, DELIVERED) for message in (begun, finished)]
                + [delivery(begun, 2)],
                fanouts=[FanoutRow(message.key, 0, 9, False) for message in (untouched, begun)],
            )
        )
        assert list(driver.restart().open) == [
            OpenMessage(untouched, []),
            OpenMessage(begun, [delivery(begun, 2)]),
        ]

    def test_numbers_are_not_given_out_again_after_what_had_them_is_gone(
        self, driver: Driver
    ) -> None:
        make = Maker()
        message = make.message()
        driver.store.apply(make.commit([message], devices=[device(9)]))
        driver.store.apply(make.commit(devices=[device(3)], removed_devices=[9]))
        retire_all(driver.store, messages_before=FAR_FUTURE)
        restored = driver.restart()
        assert (restored.last_key, restored.next_device) == (message.key, 10)


class TestApplying:
    def test_a_message_keeps_every_field(self, store: Store) -> None:
        message = Message(
            key=MAX_KEY,
            salt=2**64 - 1,
            app="app",
            source="device:a",
            target=Target(TargetKind.TOPIC, "news"),
            accepted_at=START,
            body=bytes(range(256)),
            content_type="application/octet-stream",
            title="T\u00eftle\0",
            priority=9,
            rank=-1.5,
            deliver_after=START,
            deliver_before=START + 1,
            queue="q",
            replace_key="r",
            in_reply_to=5,
            headers=(("a", "b"), ("a", "c")),
        )
        store.apply(Maker().commit([message]))
        assert store.messages([MAX_KEY]) == {MAX_KEY: message}

    def test_a_kept_message_has_its_body_when_the_senders_copy_has_lost_it(
        self, driver: Driver
    ) -> None:
        make = Maker()
        message = make.message(b"kept")
        driver.store.apply(make.commit([message], [delivery(message)]))
        message.body = b""
        found = driver.store.messages([message.key])[message.key]
        assert found.body == b"kept"
        found.body = b""
        (restored,) = driver.restart().open
        assert restored.message.body == b"kept"

    def test_a_later_row_replaces_an_earlier_one(self, store: Store) -> None:
        make = Maker()
        message = make.message()
        store.apply(make.commit([message], [delivery(message, state=PENDING)]))
        store.apply(make.commit([], [delivery(message, state=SENDING)]))
        assert store.deliveries(message.key) == [delivery(message, state=SENDING)]

    def test_commits_applied_together_are_as_if_one_after_the_other(self, store: Store) -> None:
        make = Maker()
        message = make.message()
        store.apply(
            make.commit([message], [delivery(message, state=DELIVERED)], events=1),
            make.commit(replies=[ReplyRow(message.key, 1, 77)], events=2),
            make.commit([make.message()], [delivery(message, state=DELIVERED)], events=1),
        )
        assert store.deliveries(message.key) == [delivery(message, state=DELIVERED)]
        assert [(page.first, page.count) for page in store.events(0, 1 << 20)] == [
            (0, 1),
            (1, 2),
            (3, 1),
        ]
        store.apply(make.commit(events=1))
        assert store.event_at(4) == event_line(4)[:-1]

    def test_nothing_to_apply_is_nothing_done(self, store: Store) -> None:
        store.apply()
        store.apply(Maker().commit())

    def test_only_the_first_reply_of_an_addressed_device_counts(self, store: Store) -> None:
        make = Maker()
        message = make.message()
        replies = [ReplyRow(message.key, 1, 70), ReplyRow(message.key, 2, 80)]
        store.apply(make.commit([message], [delivery(message, state=DELIVERED)], replies=replies))
        store.apply(make.commit(replies=[ReplyRow(message.key, 1, 71)]))
        assert store.deliveries(message.key) == [delivery(message, state=DELIVERED, reply=70)]

    def test_the_first_of_two_replies_in_one_commit_counts(self, store: Store) -> None:
        make = Maker()
        message = make.message()
        replies = [ReplyRow(message.key, 1, 70), ReplyRow(message.key, 1, 71)]
        store.apply(make.commit([message], [delivery(message)], replies=replies))
        assert store.deliveries(message.key) == [delivery(message, reply=70)]

    def test_a_removed_device_takes_its_session_along(self, driver: Driver) -> None:
        make = Maker()
        message = make.message()
        driver.store.apply(
            make.commit(
                [message],
                [delivery(message, state=DELIVERED)],
                devices=[device(1), device(2)],
                sessions=[session(1), session(2)],
            )
        )
        driver.store.apply(
            make.commit(devices=[device(1)], sessions=[session(1)], removed_devices=[1])
        )
        restored = driver.restart()
        assert list(restored.devices) == [device(2)]
        assert list(restored.sessions) == [session(2)]
        assert driver.store.deliveries(message.key) == [delivery(message, state=DELIVERED)]

    def test_a_finished_fan_out_is_dropped(self, driver: Driver) -> None:
        make = Maker()
        message = make.message()
        driver.store.apply(make.commit([message], fanouts=[FanoutRow(message.key, 0, 9, False)]))
        driver.store.apply(make.commit(fanouts=[FanoutRow(message.key, 9, 9, True)]))
        assert not list(driver.restart().fanouts)

    @pytest.mark.parametrize("n", [1, 3])
    def test_a_gap_between_commits_is_refused(self, store: Store, n: int) -> None:
        make = Maker()
        store.apply(make.commit())
        with pytest.raises(StoreBroken) as refused:
            store.apply(replace(make.commit(events=1), n=n))
        assert str(refused.value) == f"commits must be consecutive (expected=2, got={n})"
        assert store.counts().events == 0

    def test_a_gap_between_events_is_refused(self, store: Store) -> None:
        make = Maker(next_event=5)
        with pytest.raises(StoreBroken) as refused:
            store.apply(make.commit(events=1))
        assert str(refused.value) == "events must be consecutive (expected=0, got=5)"

    def test_message_keys_that_do_not_ascend_are_refused(self, store: Store) -> None:
        make = Maker()
        older, newer = make.messages(2)
        with pytest.raises(StoreBroken) as refused:
            store.apply(make.commit([newer, older]))
        assert str(refused.value) == "message keys must ascend (last=0, commit=1)"
        make = Maker()
        store.apply(make.commit([newer]))
        with pytest.raises(StoreBroken, match="message keys must ascend"):
            store.apply(make.commit([newer]))

    def test_of_a_refused_group_nothing_is_written(self, store: Store) -> None:
        make = Maker()
        good = make.accepted(b"a")
        with pytest.raises(StoreBroken):
            store.apply(good, replace(make.accepted(b"b"), n=9))
        assert store.counts().messages == 0
        store.apply(good)

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        store.close()
        with pytest.raises(StoreBroken, match="the store is closed"):
            store.apply(Maker().commit())
        with pytest.raises(StoreBroken, match="the store is closed"):
            store.counts()


class TestReading:
    def test_messages_are_found_wherever_they_are(self, store: Store) -> None:
        make = Maker()
        kept: dict[int, Message] = {}
        for _ in range(5):
            messages = make.messages(50)
            kept |= {message.key: message for message in messages}
            store.apply(make.commit(messages))
            make.now += SECOND
        some = list(kept)[::7]
        assert store.messages(some) == {number: kept[number] for number in some}
        assert store.messages(reversed(kept)) == kept

    def test_unknown_messages_are_left_out(self, store: Store) -> None:
        make = Maker()
        first, unknown, second = make.messages(3)
        later = make.message()
        store.apply(make.commit([first, second]))
        wanted = [0, first.key, unknown.key, second.key, later.key, MAX_KEY]
        assert store.messages(wanted) == {first.key: first, second.key: second}
        assert store.messages([]) == {}

    def test_deliveries_of_a_message_come_by_device(self, store: Store) -> None:
        make = Maker()
        first, second = make.messages(2)
        rows = [delivery(first, 3), delivery(first, 1), delivery(second, 2)]
        store.apply(make.commit([first, second], rows))
        assert store.deliveries(first.key) == [delivery(first, 1), delivery(first, 3)]
        assert store.deliveries(5) == []

    def test_all_deliveries_are_those_of_one_moment(self, store: Store) -> None:
        make = Maker()
        first, second = make.messages(2)
        store.apply(make.commit([first, second], [delivery(second), delivery(first, 2)]))
        rows = store.all_deliveries()
        assert next(rows) == delivery(first, 2)
        store.apply(make.commit([], [delivery(first, 1), delivery(second, 2)]))
        assert list(rows) == [delivery(second)]

    def test_keys_are_found_by_app_and_name(self, store: Store) -> None:
        other = replace(key("a"), app="other")
        store.apply(Maker().commit(keys=[key("a"), key("b"), key("b", first=2), other]))
        assert store.find_keys("app", ["a", "b", "c"]) == {"a": key("a"), "b": key("b", first=2)}
        assert store.find_keys("other", ["a", "b"]) == {"a": other}

    def test_a_device_is_found_by_name(self, store: Store) -> None:
        store.apply(Maker().commit(devices=[device(1), device(2, "twin"), device(3, "twin")]))
        assert store.device("app", "phone-1") == device(1)
        assert store.device("app", "twin") == device(3, "twin")
        assert store.device("other", "phone-1") is None

    def test_a_reader_sees_what_is_applied_after_it_was_made(self, store: Store) -> None:
        reader = store.reader()
        store.apply(Maker().accepted(b"a"))
        assert reader.counts().messages == 1
        if reader is not store:
            reader.close()

    def test_counts_tell_how_much_there_is(self, store: Store) -> None:
        make = Maker()
        messages = make.messages(3)
        store.apply(
            make.commit(
                messages,
                [delivery(messages[0]), delivery(messages[1], state=SENDING)]
                + [delivery(messages[2], number, DELIVERED) for number in (1, 2)],
                devices=[device(1), device(2)],
                sessions=[session(1)],
                keys=[key("a")],
                fanouts=[FanoutRow(messages[0].key, 0, 2, False)],
                credentials=[credential(1)],
                events=4,
            )
        )
        assert store.counts() == Counts(
            messages=3,
            open_deliveries={PENDING: 1, SENDING: 1},
            finished_deliveries={DELIVERED: 2},
            devices=2,
            sessions=1,
            keys=1,
            fanouts=1,
            credentials=1,
            events=4,
            rows={"pushes": 0, "notifications": 0, "addresses": 0, "remembered": 0},
        )


class TestEvents:
    def test_pages_start_where_asked_and_stop_at_the_limit(self, store: Store) -> None:
        make = Maker()
        for _ in range(3):
            store.apply(make.commit(events=4))
        everything = b"".join(map(event_line, range(12)))
        assert b"".join(page.lines for page in store.events(0, 1 << 20)) == everything
        for first in range(12):
            (page,) = store.events(first, limit_bytes=1)
            assert page.first == first
            assert page.end == first // 4 * 4 + 4
            assert page.lines == b"".join(map(event_line, range(first, page.end)))
        two_pages = sum(len(event_line(i)) for i in range(8))
        assert [page.first for page in store.events(0, two_pages)] == [0, 4]
        assert [page.first for page in store.events(0, two_pages - 1)] == [0]
        assert store.events(12, 1 << 20) == []

    def test_one_event_is_found_by_its_offset(self, store: Store) -> None:
        make = Maker()
        store.apply(make.commit(events=2))
        store.apply(make.commit(events=3))
        assert [store.event_at(i) for i in range(5)] == [event_line(i)[:-1] for i in range(5)]
        assert store.event_at(5) is None

    def test_the_export_cursor_is_durable_and_never_moves_back(self, driver: Driver) -> None:
        driver.store.apply(Maker().commit(events=5))
        assert driver.store.exported_to() == 0
        driver.store.exported(4)
        driver.store.exported(2)
        driver.restart()
        assert driver.store.exported_to() == 4

    def test_what_is_yet_to_come_cannot_have_been_exported(self, store: Store) -> None:
        store.apply(Maker().commit(events=1))
        with pytest.raises(StoreBroken) as refused:
            store.exported(2)
        assert (
            str(refused.value)
            == "events that do not exist yet cannot have been exported (until=2, next=1)"
        )


class TestRetiring:
    def test_a_message_goes_when_it_is_old_and_finished(self, store: Store) -> None:
        make = Maker()
        finished, pinned, fanning, unaddressed = make.messages(4)
        make.now += 10 * SECOND
        recent = make.message()
        store.apply(
            make.commit(
                [finished, pinned, fanning, unaddressed, recent],
                [delivery(message, 1, DELIVERED) for message in (finished, pinned, recent)]
                + [delivery(pinned, 2)],
                fanouts=[FanoutRow(fanning.key, 0, 9, False)],
            )
        )
        retired = store.retire(messages_before=START + SECOND, keys_before=0)
        assert (retired.messages, retired.deliveries, retired.next) == (2, 1, None)
        everything = [m.key for m in (finished, pinned, fanning, unaddressed, recent)]
        assert list(store.messages(everything)) == [pinned.key, fanning.key, recent.key]
        assert store.deliveries(finished.key) == []
        assert len(store.deliveries(pinned.key)) == 2
        assert store.retire(messages_before=START + SECOND, keys_before=0).messages == 0

    def test_a_pinned_message_goes_later(self, store: Store) -> None:
        make = Maker()
        messages = make.messages(10)
        store.apply(make.commit(messages, [delivery(message) for message in messages]))
        for message in messages[::-1]:
            store.apply(make.commit([], [delivery(message, state=DELIVERED)]))
            retired = store.retire(messages_before=FAR_FUTURE, keys_before=0)
            assert (retired.messages, retired.deliveries) == (1, 1)
        assert store.counts().messages == 0

    def test_keys_have_a_retention_of_their_own(self, store: Store) -> None:
        old, new = key("old", at=START), key("new", at=START + SECOND)
        store.apply(Maker().commit(keys=[old, new]))
        assert store.retire(messages_before=0, keys_before=START + SECOND).keys == 1
        assert store.find_keys("app", ["old", "new"]) == {"new": new}

    def test_events_go_when_their_page_is_exported(self, store: Store) -> None:
        make = Maker()
        for _ in range(4):
            store.apply(make.commit(events=2))
        store.exported(7)
        assert store.retire(messages_before=0, keys_before=0, keep_events=5).events == 2
        assert store.retire(messages_before=0, keys_before=0).events == 4
        assert store.event_at(5) is None
        assert store.event_at(6) == event_line(6)[:-1]
        assert [page.first for page in store.events(0, 1 << 20)] == [6]

    def test_a_long_pass_goes_on_until_everything_is_done(self, store: Store) -> None:
        make = Maker()
        for i in range(30):
            store.apply(make.commit(make.messages(3), keys=[key(f"{i}")], events=1))
        store.exported(30)
        retire_all(store, messages_before=FAR_FUTURE, keys_before=FAR_FUTURE)
        counts = store.counts()
        assert (counts.messages, counts.keys, counts.events) == (0, 0, 0)
        store.apply(make.accepted(b"life goes on"))
        assert store.counts().messages == 1


class TestErasing:
    def test_a_device_leaves_nothing_of_its_own(self, driver: Driver) -> None:
        make = Maker()
        alone, shared, foreign = make.messages(3)
        driver.store.apply(
            make.commit(
                [alone, shared, foreign],
                [
                    delivery(alone, 1),
                    delivery(shared, 1),
                    delivery(shared, 2),
                    delivery(foreign, 2),
                ],
                devices=[device(1), device(2)],
                sessions=[session(1), session(2)],
            )
        )
        assert erase(driver.store, 1) == 1
        assert not driver.store.erase_device(1).messages
        restored = driver.restart()
        assert list(restored.devices) == [device(2)]
        assert list(restored.sessions) == [session(2)]
        assert [row.message.key for row in restored.open] == [shared.key, foreign.key]
        assert driver.store.messages([alone.key]) == {}
        assert [row.device for row in driver.store.all_deliveries()] == [2, 2]

    def test_a_message_that_still_fans_out_stays(self, store: Store) -> None:
        make = Maker()
        message = make.message()
        fanout = FanoutRow(message.key, 1, 9, False)
        store.apply(make.commit([message], [delivery(message, 1)], fanouts=[fanout]))
        assert erase(store, 1) == 0
        assert store.messages([message.key]) == {message.key: message}
        store.apply(make.commit([], [delivery(message, 2)]))
        assert store.deliveries(message.key) == [delivery(message, 2)]


class TestFeatures:
    def test_a_commit_makes_changes_when_they_are_asked_for(self) -> None:
        commit = Maker().commit()
        assert commit.empty
        changes = commit.of(GroupChanges)
        assert commit.of(GroupChanges) is changes
        assert not commit.empty

    def test_changes_that_no_table_keeps_are_not_lost_in_silence(self, store: Store) -> None:
        with pytest.raises(KeyError):
            store.apply(Maker().commit(changes=[object()]))

    def test_what_is_over_goes_in_one_commit_and_comes_again_in_the_next(
        self, driver: Driver
    ) -> None:
        make = Maker()
        driver.store.apply(
            make.commit(
                changes=[StreamChanges(pieces=[PieceRow(1, 0, b""), PieceRow(1, 2, b"b")])]
            ),
            make.commit(changes=[StreamChanges(rows={1: StreamRow(1, False, b"")})]),
            make.commit(
                changes=[StreamChanges(pieces=[PieceRow(1, 4, b"c"), PieceRow(1, 6, b"d")])]
            ),
            make.commit(changes=[StreamChanges(handed_on={1: 5})]),
        )
        assert driver.store.find(StreamRow, [1, 2]) == {1: StreamRow(1, False, b"")}
        restored = driver.restart().of(StreamsRestored)
        assert list(restored.rows) == []
        assert list(restored.pieces) == [PieceRow(1, 6, b"d")]


class TestPushes:
    def test_a_push_id_is_known_for_ever(self, driver: Driver) -> None:
        make = Maker()
        first, second = make.messages(2)
        rows = [delivery(m, state=DELIVERED) for m in (first, second)]
        pushes = [push(1, first.key), push(2, second.key)]
        driver.store.apply(
            make.commit(
                [first, second],
                rows,
                changes=[pushed(pushes=pushes, notifications=[notification(second)])],
            )
        )
        retire_all(driver.store, messages_before=FAR_FUTURE)
        found = {pushes[0].id: KnownPush(first.key, None)}
        assert driver.store.find(KnownPush, [pushes[0].id, b"other"]) == found
        # What is still to be reported keeps its message.
        assert driver.store.find(KnownPush, [pushes[1].id])[pushes[1].id].row == pushes[1]
        driver.store.apply(
            make.commit(changes=[pushed(notifications=[notification(second, done=True)])])
        )
        retire_all(driver.store, messages_before=FAR_FUTURE)
        driver.restart()
        found[pushes[1].id] = KnownPush(second.key, None)
        assert driver.store.find(KnownPush, [p.id for p in pushes]) == found

    def test_what_is_open_comes_back_with_its_ended_deliveries(self, driver: Driver) -> None:
        make = Maker()
        first, second, third = make.messages(3)
        rows = [delivery(first, 1, DELIVERED), delivery(first, 2), delivery(second, 1, DELIVERED)]
        rows.append(delivery(third, 1, DELIVERED))
        pushes = [push(1, first.key), push(2, second.key), push(3, third.key)]
        driver.store.apply(
            make.commit(
                [first, second, third],
                rows,
                changes=[pushed(pushes=pushes, notifications=[notification(third)])],
            )
        )
        restored = driver.restart().of(PushesRestored)
        assert list(restored.pushes) == [
            OpenPush(pushes[0], rows[:1]),
            OpenPush(pushes[2], rows[3:]),
        ]
        assert list(restored.notifications) == [notification(third)]

    def test_an_address_without_a_target_is_removed(self, driver: Driver) -> None:
        make = Maker()
        driver.store.apply(make.commit(changes=[pushed(addresses=[address("a"), address("b")])]))
        driver.store.apply(make.commit(changes=[pushed(addresses=[address("a", "")])]))
        assert list(driver.restart().of(PushesRestored).addresses) == [address("b")]
