"""The hop protocol over HTTP requests, without I/O: an unordered mapping that loses nothing.

The device makes requests and the gateway answers; both carry units. `asking` is the device's side,
`answering` the gateway's, `bodies` the format of both. Every request has a number, so that one
whose answer got lost is simply repeated: its units are taken once, and its answer is the same.
"""
