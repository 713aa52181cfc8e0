"""The Wireless Transaction Protocol: requests over datagrams that lose, double and reorder.

Start reading at `pdus` (what travels), then `message` (one message in packets), `initiator` and
`responder` (the two sides of a transaction) and `endpoint` (all transactions of one socket).

Three classes: 0 is sent and forgotten, 1 is acknowledged, 2 brings a result back. Within one
transaction the responder's user hears of a message exactly once.
"""
