"""Short messages as 3GPP 23.038 and 23.040 define them: alphabets, the user data header with ports
and concatenation, segments, and the units that a phone or modem exchanges.

Nothing here sends anything: `wire.smpp` and `delivery.sms` do.
"""
