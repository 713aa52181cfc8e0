"""Devices with preferences: which links they use, when, and what they can afford."""
