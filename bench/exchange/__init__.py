"""The thesis's experiment of section 7.5, on virtual time.

A client calls a server 50 to 250 times: over our hop protocol with Xebu, asynchronously; and over
HTTP with XML, synchronously, with a connection for each call or one for all calls. The protocols
are real (every byte of them is made and parsed), the network below is a model: `pipe` models a link
with rate, delay and loss, `tcp` the connections over it. `command` runs the experiment and draws
the figures.

This measures the protocol by itself. `live` sends the same calls through a real gateway and a real
device over sockets, and counts their bytes on the device's link.
"""
