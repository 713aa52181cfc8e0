"""Carriers of the Push Over-the-Air protocol, one for each of its variants.

`unit` sends datagrams, `sessions` pushes within WSP sessions, `http` posts to clients that are HTTP
servers. The protocols are in `wire.ota` and `wire.wtp`; here are only sockets and timers.
"""
