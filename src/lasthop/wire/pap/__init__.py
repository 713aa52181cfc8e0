"""The Push Access Protocol between a push initiator and the gateway, versions 1.0 to 2.2.

Start reading at `documents` (what can be said), then `reader` and `writer` (the XML), `multipart`
and `submission` (how it is packed) and `addresses` (who is meant). `codes` holds every status code
and state, `versions` who understands what, and `outcomes` how many deliveries become one answer.
"""
