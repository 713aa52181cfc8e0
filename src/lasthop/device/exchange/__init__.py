"""Patterns of communication over any payload: send, call, futures, callbacks, conversations,
subscribe and notify.

Applications start with `exchange.Exchange`. It encodes and decodes through a `binding` (JSON, text,
bytes, XML ...), hands `received` messages to handlers, and leaves sorting incoming messages to the
device's one `switchboard`.
"""
