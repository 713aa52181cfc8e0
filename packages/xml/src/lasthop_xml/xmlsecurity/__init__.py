"""XML Signature and XML Encryption over event sequences, in whichever format they are sent.

A signature covers the canonical form of the events, so a signature that was made over XML remains
valid after the document was sent as Xebu, and the other way round. Start reading at `signing` and
`verifying`, then `encryption`. The cryptography itself is that of the `cryptography` package (extra
`security`).
"""
