"""BEEP (RFC 3080) and its mapping onto TCP (RFC 3081), without I/O.

`frames` cuts the byte stream into frames, `management` reads and writes the documents of channel 0,
`channel` counts octets and joins frames into messages, `session` is one connection with its
channels. `hop` carries the hop protocol over one channel.
"""
