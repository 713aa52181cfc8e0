"""The embedded store: one SQLite file in the data directory, nothing to install or configure.

`store` owns the writing connection, `reader` answers questions, `writing` turns commits into one
statement, `forgetting` removes what is old or must be erased, `migrations` holds the schema.
`faults` cuts stores the way a loss of power does, for tests and rehearsals.
"""

from lasthop.store.sqlite.backup import restore
from lasthop.store.sqlite.reader import SqliteReader
from lasthop.store.sqlite.store import SqliteStore

__all__ = ["SqliteReader", "SqliteStore", "restore"]
