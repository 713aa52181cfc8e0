"""The Push Access Protocol between a push initiator and the gateway, versions 1.0 to 2.2.

Start reading at `documents` (the messages), then `reader` and `writer` (the XML), `multipart` and
`submission` (the MIME packaging) and `addresses` (client addresses). `codes` holds every status
code and state, `versions` the choice of a version, and `outcomes` how many deliveries become one
answer.
"""
