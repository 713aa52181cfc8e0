"""The asyncio adapters of the hop protocol, used by `delivery` and `device` alike.

`link` joins a channel's protocol state to whatever carries its bytes; `stream` carries them over
TCP, TLS and Unix sockets, `websocket` as binary messages, `requests` in HTTP requests, `seqpacket`
in packets, `beep` on a channel of a BEEP session; `alarms` keeps time for all links at once;
`address` parses the address of a gateway, and `dial` opens a link there from the device's side.
"""
