"""The event log as JSON-lines segments, and everything that reads it.

The core makes the events and the store commits them; here they are exported to files that any tool
can read (`segment`, `exporter`), read back by offset or date (`reader`), followed (`tail`),
collected into the history of one delivery (`story`) and compared with the store (`check`).
`docs/event-log.md` is the contract.
"""
