"""Ranked topics on the device: unread messages are kept until the user reads, or the gateway shows
them."""
