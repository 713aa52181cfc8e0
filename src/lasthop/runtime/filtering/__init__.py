"""Matches the filters of subscriptions with large bodies in a process of its own: doing that in the
gateway would hold the interpreter, and everybody would wait."""
