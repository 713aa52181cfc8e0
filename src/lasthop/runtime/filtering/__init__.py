"""Matches the filters of subscriptions against large bodies in a separate process: in the gateway's
process that would block the interpreter, and everybody would wait."""
