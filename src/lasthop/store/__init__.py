"""Drivers that make commits durable: `memory` for rehearsal, `sqlite` for a gateway.

`commit` defines what is written, `base` the contract that every driver keeps, `writer` the thread
that a live gateway writes from. Nothing is imported here, so that the core can name a `Commit`
without loading a database.
"""
