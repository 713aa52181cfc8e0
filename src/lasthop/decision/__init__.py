"""Decisions about what to send, when, and over which link: pure functions that get `now` as an
argument."""
