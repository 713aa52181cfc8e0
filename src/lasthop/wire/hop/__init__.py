"""The hop protocol between device and gateway, version 1; docs/hop-protocol.md specifies it.

Start reading at `frames` (what can be said), then `handshake` and `connection` (a channel), then
`sequence` and `persistence` (what outlives channels). `encoder` and `decoder` know the bytes.
"""
