"""The tables of features: one entry for each, from which both drivers take what they need.

A driver knows messages, deliveries, devices and events; it does not know what features there are. A
new feature adds its rows and an entry here, and in `sqlite/migrations.py` the step that makes its
tables; one that remembers little uses `MemoryRow` instead.
"""

from __future__ import annotations

from lasthop.store.groups import GroupChanges, GroupMessageRow
from lasthop.store.lanes import LaneChanges
from lasthop.store.pushes import KnownPush, PushChanges
from lasthop.store.ranked import RankedChanges
from lasthop.store.remembered import HistoryChanges
from lasthop.store.streams import StreamChanges, StreamRow
from lasthop.store.surrogates import SurrogateChanges
from lasthop.store.tables.base import Kept
from lasthop.store.tables.groups import GroupsInMemory, GroupsInSqlite
from lasthop.store.tables.lane_table import LanesInMemory, LanesInSqlite
from lasthop.store.tables.pushes import PushesInMemory, PushesInSqlite
from lasthop.store.tables.ranked import RankedInMemory, RankedInSqlite
from lasthop.store.tables.streams import StreamsInMemory, StreamsInSqlite
from lasthop.store.tables.surrogates import SurrogatesInMemory, SurrogatesInSqlite
from lasthop.store.tables.topic_histories import HistoryInMemory, HistoryInSqlite

TABLES = (
    Kept(PushChanges, PushesInMemory, PushesInSqlite(), KnownPush),
    Kept(RankedChanges, RankedInMemory, RankedInSqlite()),
    Kept(SurrogateChanges, SurrogatesInMemory, SurrogatesInSqlite()),
    Kept(GroupChanges, GroupsInMemory, GroupsInSqlite(), GroupMessageRow),
    Kept(StreamChanges, StreamsInMemory, StreamsInSqlite(), StreamRow),
    Kept(LaneChanges, LanesInMemory, LanesInSqlite()),
    Kept(HistoryChanges, HistoryInMemory, HistoryInSqlite()),
)
