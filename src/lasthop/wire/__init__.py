"""Codecs and protocol sessions without I/O: bytes become values, and values become bytes.

Nothing here owns a socket, a task or a clock; `delivery` and `transport` bring those.
"""
