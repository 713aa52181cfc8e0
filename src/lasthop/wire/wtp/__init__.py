"""The Wireless Transaction Protocol: requests over datagrams that are lost, doubled and reordered.

Start reading at `pdus` (the PDUs), then `message` (one message in packets), `initiator` and
`responder` (the two sides of a transaction) and `endpoint` (all transactions of one socket).

Three classes: 0 is sent without acknowledgement, 1 is acknowledged, 2 brings a result back. Within
one transaction the responder's user gets a message exactly once.
"""
