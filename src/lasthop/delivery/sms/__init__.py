"""Short messages as a carrier: pushes and texts for phones, over any of several links.

`carrier` chooses a link for each push and follows it to its outcome; a link is a session with an
SMSC (`smpp_link`), an aggregator's HTTP interface, or a modem.
"""
