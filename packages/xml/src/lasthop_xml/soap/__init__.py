"""SOAP 1.2 over XAS events, whatever format they travel in.

`envelope` reads and writes messages, `node` decides about their header blocks, `fault` says what
went wrong, `addressing` has the headers of WS-Addressing 1.0.
"""
