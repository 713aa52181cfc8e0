"""Xebu: the events of XAS in few bytes (seed 002, section 5.3.2).

Start reading at `layout` (the bytes of an event), then `tokens` (what is sent once and then named
by one byte), `encoder` and `decoder`. Token tables live as long as a session, across its messages
and reconnects; `snapshot` makes them into bytes and back.
"""
