"""Both drivers against the naive model, over whatever Hypothesis can think of.

About `store/base.py`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TypeVar
from unittest import mock

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from lasthop.clock import SECOND
from lasthop.message import Message
from lasthop.store.base import Forgotten, Store
from lasthop.store.commit import Commit, FanoutRow, MemoryRow, ReplyRow
from lasthop.store.groups import GroupChanges, GroupMessageRow, GroupRow
from lasthop.store.ranked import FeedRow, RankedChanges, TopicRow
from lasthop.store.remembered import HistoryChanges, RememberedRow
from lasthop.store.streams import PieceRow, StreamChanges, StreamRow
from lasthop.store.surrogates import ConsultRow, RevisionRow, StateRow, SurrogateChanges
from tests.store.conftest import Driver, memory_driver, sqlite_driver
from tests.store.making import (
    DELIVERED,
    Maker,
    address,
    credential,
    delivery,
    device,
    group_messages,
    kept,
    key,
    notification,
    push,
    pushed,
    ranked,
    session,
)
from tests.store.model import Model

Changes = TypeVar("Changes")

devices = st.integers(1, 6)
seconds = st.integers(0, 40)


class Drivers(RuleBasedStateMachine):
    """Does the same to the drivers and to the model, and compares."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.drivers: list[Driver] = [
            memory_driver(),
            sqlite_driver(Path(self.directory.name) / "data"),
        ]
        self.model = Model()
        self.make = Maker()
        self.waiting: list[Commit] = []
        self.known: list[int] = []
        self.pushes = 0
        self.gone: set[int] = set()
        self.apart: set[int] = set()
        """Messages that have no deliveries and never will."""
        self.consults: dict[int, ConsultRow] = {}
        self.revisions: dict[int, RevisionRow] = {}

    @property
    def stores(self) -> list[Store]:
        return [driver.store for driver in self.drivers]

    @rule(data=st.data(), new=st.integers(0, 9), pause=seconds, events=st.integers(0, 3))
    def collect(self, data: st.DataObject, new: int, pause: int, events: int) -> None:
        """Make a commit, to be applied alone or with others."""
        self.make.now += pause * SECOND // 4
        messages = self.make.messages(new)
        self.known += [message.key for message in messages]
        chosen = st.lists(st.sampled_from(self.known), max_size=5) if self.known else st.just([])
        state = st.integers(0, DELIVERED + 1)
        # Devices that were removed or erased are not heard of again, nor are retired messages.
        alive = [number for number in range(1, 7) if number not in self.gone] or [99]
        number = st.sampled_from(alive)
        surrogates, more = self._surrogates(data, alive)
        self.waiting.append(
            self.make.commit(
                messages + more,
                [delivery(m, data.draw(number), data.draw(state)) for m in data.draw(chosen)],
                sessions=[session(n, epoch=events) for n in data.draw(st.lists(number))],
                devices=[device(n) for n in data.draw(st.lists(number, max_size=3))],
                removed_devices=data.draw(removals(alive)),
                keys=[
                    key(data.draw(st.sampled_from("abc")), at=self.make.now)
                    for _ in range(new // 2)
                ],
                replies=[
                    ReplyRow(m, data.draw(number), data.draw(st.integers(1, 9)))
                    for m in data.draw(chosen)
                ],
                fanouts=[
                    FanoutRow(m, events, 6, data.draw(st.booleans())) for m in data.draw(chosen)[:1]
                ],
                credentials=[credential(new, revoked=events == 1)] if new < 3 else [],
                memories=[
                    MemoryRow(data.draw(number), data.draw(st.sampled_from("ab")), b"x" * events)
                    for _ in range(new // 2)
                ],
                changes=[
                    pushed(
                        addresses=[
                            address(name, "user:x" * data.draw(st.booleans()))
                            for name in data.draw(st.lists(st.sampled_from("ab"), max_size=events))
                        ],
                        pushes=[push(self.pushes + i, m.key) for i, m in enumerate(messages)],
                        notifications=[
                            notification(m, events, attempts=new, done=data.draw(st.booleans()))
                            for m in data.draw(chosen)[:2]
                        ],
                    ),
                    *surrogates,
                    *data.draw(some(self._ranked(alive))),
                    *data.draw(some(self._group_messages())),
                    *data.draw(some(self._streams())),
                    *data.draw(some(self._history(messages))),
                ],
                events=events,
            )
        )
        self.pushes += new
        self.gone |= set(self.waiting[-1].removed_devices)

    def _group_messages(self) -> st.SearchStrategy[GroupChanges]:
        records = st.sampled_from([b"", b"\0\xff", b"more"])
        targets = st.sampled_from(["group:crew", "queue:jöbs"])
        rows = st.builds(
            GroupMessageRow,
            st.sampled_from(self.known or [1]),
            st.integers(1, 9),
            st.booleans(),
            st.integers(0, 3),
            st.integers(0, 9),
            st.lists(st.integers(1, 9)).map(tuple),
            records,
        )
        return st.builds(
            group_messages,
            records=st.lists(st.builds(GroupRow, st.just("app"), targets, records), max_size=3),
            group_messages=st.lists(rows, max_size=3) if self.known else st.just([]),
        )

    def _ranked(self, alive: list[int]) -> st.SearchStrategy[RankedChanges]:
        messages = st.sampled_from(self.known or [1])
        number = st.sampled_from(alive)
        topic = st.sampled_from(["news", "wärme"])
        records = st.sampled_from([b"", b"state", b"more state"])
        return st.builds(
            ranked,
            feeds=st.lists(st.builds(FeedRow, number, topic, st.integers(0, 1), records)),
            kept=st.lists(st.builds(kept, messages, number, st.integers(0, 3))),
            ranks=st.dictionaries(messages, st.floats(-1e9, 1e9), max_size=3),
            topics=st.lists(
                st.builds(
                    TopicRow,
                    st.just("app"),
                    topic,
                    st.just("publisher:p"),
                    st.text(max_size=3),
                    st.integers(0, 9),
                ),
                max_size=2,
            ),
        )

    def _history(self, new: list[Message]) -> st.SearchStrategy[HistoryChanges]:
        rows = {m.key: RememberedRow(m.key, "app", "wärme", m.key % 3, len(m.body), 7) for m in new}
        forgotten = st.lists(st.sampled_from(self.known or [1]), max_size=3)
        return st.builds(HistoryChanges, rows=st.just(rows), forgotten=forgotten)

    def _streams(self) -> st.SearchStrategy[StreamChanges]:
        keys = st.sampled_from(self.known[:3] or [1])
        offsets = st.integers(0, 4)
        bodies = st.sampled_from([b"", b"\0\xff", b"more"])
        return st.builds(
            StreamChanges,
            rows=st.lists(st.builds(StreamRow, keys, st.booleans(), bodies), max_size=3).map(
                lambda rows: {row.key: row for row in rows}
            ),
            pieces=st.lists(st.builds(PieceRow, keys, offsets, bodies), max_size=4),
            handed_on=st.dictionaries(keys, offsets, max_size=2),
        )

    def _surrogates(
        self, data: st.DataObject, alive: list[int]
    ) -> tuple[list[SurrogateChanges], list[Message]]:
        """What waits for surrogates, what they made, and what they remember."""
        if not data.draw(st.booleans()):
            return [], []
        changes = SurrogateChanges()
        messages = self.make.messages(data.draw(st.integers(0, 2)))
        for message in messages:
            self.apart.add(message.key)
            number = data.draw(st.sampled_from(alive))
            if data.draw(st.booleans()):
                row = ConsultRow(len(self.apart), "app", number, message.key, True, 1, 2)
                changes.consults[row.number] = self.consults[row.number] = row
            else:
                made = RevisionRow(message.key, 1, number, 5, "text/x", None, (("a", "b"),), 1.5)
                changes.revisions[message.key] = self.revisions[message.key] = made
        for number in data.draw(st.lists(st.sampled_from(sorted(self.consults) or [0]))):
            if number in self.consults:
                done = replace(self.consults.pop(number), done=True)
                changes.consults[number] = done
        for made_as in data.draw(st.lists(st.sampled_from(sorted(self.revisions) or [0]))):
            if made_as in self.revisions and self.revisions[made_as].device in alive:
                changes.revisions[made_as] = replace(self.revisions.pop(made_as), open=False)
        for name in data.draw(st.lists(st.sampled_from(["a", "b", "wärme"]))):
            value = data.draw(st.sampled_from([b"", b"x", bytes(300)]))
            changes.states["app", name] = StateRow("app", name, value)
        return [changes], messages

    @rule()
    def apply_together(self) -> None:
        self._apply()

    def _apply(self) -> None:
        for store in self.stores:
            store.apply(*self.waiting)
        for commit in self.waiting:
            self.model.apply(commit)
        self.waiting = []

    @rule()
    def restart(self) -> None:
        for driver in self.drivers:
            self.model.check_restored(driver.restart())

    @rule(share=st.floats(0, 1))
    def export(self, share: float) -> None:
        until = int(self.model.next_event * share)
        self.model.exported_to = max(self.model.exported_to, until)
        for store in self.stores:
            store.exported(until)

    @rule(messages_ago=seconds, keys_ago=seconds, keep=st.integers(0, 5))
    def retire(self, messages_ago: int, keys_ago: int, keep: int) -> None:
        self._apply()
        messages_before = self.make.now - messages_ago * SECOND
        keys_before = self.make.now - keys_ago * SECOND
        expected = self.model.retire(
            messages_before=messages_before, keys_before=keys_before, keep_events=keep
        )
        for store in self.stores:
            total = Forgotten(next=0)
            while total.next is not None:
                add(
                    total,
                    store.retire(
                        messages_before=messages_before,
                        keys_before=keys_before,
                        keep_events=keep,
                        start=total.next,
                    ),
                )
            assert total == expected
        self._forget_messages()

    @rule(number=devices)
    def erase(self, number: int) -> None:
        self._apply()
        expected = self.model.erase_device(number)
        for store in self.stores:
            total = Forgotten(next=0)
            while total.next is not None:
                add(total, store.erase_device(number, start=total.next))
            assert total == expected
        self.gone.add(number)
        self._forget_messages()

    def _forget_messages(self) -> None:
        kept = [message.key for message in self.model.messages]
        self.known = [key for key in kept if key not in self.apart]
        self.revisions = {key: row for key, row in self.revisions.items() if key in kept}

    @invariant()
    def agree(self) -> None:
        for store in self.stores:
            self.model.check(store)

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.directory.cleanup()


def some(changes: st.SearchStrategy[Changes]) -> st.SearchStrategy[list[Changes]]:
    """What a commit has, or has not."""
    return st.lists(changes, max_size=1)


def removals(alive: list[int]) -> st.SearchStrategy[list[int]]:
    some = st.lists(st.sampled_from(alive), max_size=2)
    return st.one_of(st.just([]), st.just([]), st.just([]), some)


def add(total: Forgotten, step: Forgotten) -> None:
    total.messages += step.messages
    total.deliveries += step.deliveries
    total.keys += step.keys
    total.events += step.events
    total.next = step.next


def test_drivers_do_what_the_model_does() -> None:
    # Small steps and pages, so that the edges between them are met.
    with (
        mock.patch("lasthop.store.sqlite.forgetting.PAGES_PER_STEP", 2),
        mock.patch("lasthop.store.sqlite.forgetting.EVENT_PAGES_PER_STEP", 2),
        mock.patch("lasthop.store.sqlite.forgetting.ROWS_PER_STEP", 3),
        mock.patch("lasthop.store.sqlite.pages.PAGE_BYTES", 150),
    ):
        run_state_machine_as_test(
            Drivers, settings=settings(max_examples=60, stateful_step_count=25, deadline=None)
        )
