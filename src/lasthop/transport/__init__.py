"""The asyncio adapters of the hop protocol, used by `delivery` and `device` alike.

`link` joins a channel's machine to whatever carries its bytes; `stream` carries them over TCP, TLS
and Unix sockets, `websocket` as binary messages, `requests` in HTTP requests, `seqpacket` in
packets, `beep` on a channel of a BEEP session; `alarms` keeps time for all links at once; `address`
reads where a gateway is, and `dial` opens a link there from the device's side.
"""
