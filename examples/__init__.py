"""Small programs that show what lasthop is for. Each runs by itself: `python -m examples.media`."""
