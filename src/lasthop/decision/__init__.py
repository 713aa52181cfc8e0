"""What to send, when, and over which link: pure functions; `now` is an argument."""
