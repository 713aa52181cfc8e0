"""Chooses the links that a device sends over, within what it may spend; a message gets its number
when a link has been chosen for it."""
