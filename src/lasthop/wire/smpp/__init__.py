"""SMPP 3.4, the protocol between a gateway and the SMSC of an operator, as pure code.

`pdus` has the octets, `esme` the gateway's side of a connection and `smsc` the operator's side;
none of them owns a socket or a clock.
"""
