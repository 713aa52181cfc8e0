"""SOAP 1.2 over XAS events, in whichever format they are sent.

`envelope` reads and writes messages, `node` decides what a node does with their header blocks,
`fault` reports errors, `addressing` has the headers of WS-Addressing 1.0. Sections of "part 1" are
those of SOAP 1.2 part 1, Messaging Framework.
"""
