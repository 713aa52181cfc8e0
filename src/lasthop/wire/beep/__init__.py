"""BEEP (RFC 3080) and its mapping onto TCP (RFC 3081), sans-I/O.

`frames` cuts the byte stream, `management` is what channel 0 says, `channel` counts octets and puts
messages together, `session` is one connection with its channels. `hop` carries the hop protocol
over one of them.
"""
