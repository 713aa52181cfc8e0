"""Filters of subscriptions, matched with large bodies in a process of their own: reading them in
Python would hold the interpreter, and everybody would wait."""
