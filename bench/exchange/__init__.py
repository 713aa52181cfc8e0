"""The thesis's experiment of section 7.5, on virtual time.

A client calls a server 50 to 250 times: over our hop protocol with Xebu, asynchronously; and over
HTTP with XML, synchronously, with a connection for each call or one for all of them. The protocols
are real (every byte of them is made and parsed), the network below is a model: `pipe` a link with
rate, delay and loss, `tcp` what runs over it. `command` runs it all and draws the figures.

That is the protocol by itself. `live` sends the same calls through the product, a gateway and a
device over real sockets, and counts what they take there.
"""
