"""Devices that say which links they like, when, and what they can afford."""
