"""The asyncio adapters of the hop protocol, used by `delivery` and `device` alike.

`link` joins a channel's machine to whatever carries its bytes; `stream` carries them over TCP, TLS
and Unix sockets, `websocket` as binary messages; `alarms` keeps time for all links at once; `dial`
opens a link from the device's side.
"""
