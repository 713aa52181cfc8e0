"""XML Signature and XML Encryption over event sequences, whichever format they travel in.

What is signed is the canonical form of the events, so a signature that was made over XML holds
after a trip through Xebu and the other way round. Start reading at `signing` and `verifying`, then
`encryption`. The cryptography itself is that of the `cryptography` package (extra `security`).
"""
