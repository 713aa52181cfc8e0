"""Xebu: the events of XAS in few bytes (thesis, section 5.3.2).

Start reading at `layout` (the bytes of an event), then `tokens` (strings that are sent once and
afterwards named by one byte), `encoder` and `decoder`. Token tables live as long as a session,
across its messages and reconnects; `snapshot` turns them into bytes and back.
"""
