"""Ranked topics on the device: unread messages are kept until somebody looks, or the gateway shows
them."""
