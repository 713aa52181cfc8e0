"""Ranked topics in the gateway: what is worth a device's while, and when it goes there."""
