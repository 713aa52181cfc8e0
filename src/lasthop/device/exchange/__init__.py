"""Ways to talk, over any payload: send, call, futures, callbacks, conversations, subscribe/notify.

`exchange.Exchange` is where an application begins. It speaks through a `binding` (JSON, text,
bytes, XML ...), hands over what is `received`, and leaves the sorting of what comes in to the
device's one `switchboard`.
"""
