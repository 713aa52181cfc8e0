"""Transfers in pieces: streams, and bodies too large for one frame."""
