"""The hop protocol between device and gateway, version 1, which docs/hop-protocol.md specifies.

Start reading at `frames` (the frames as values), then `handshake` and `connection` (a channel),
then `sequence` and `persistence` (what outlives channels). `encoder` and `decoder` know the bytes.
"""
