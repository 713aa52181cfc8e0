"""Sans-I/O codecs and sessions: bytes in, values out, and back.

Nothing here owns a socket, a task or a clock.
"""
