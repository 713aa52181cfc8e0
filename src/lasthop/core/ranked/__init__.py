"""Ranked topics in the gateway: which messages are worth sending to a device, and when."""
