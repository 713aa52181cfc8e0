"""Which links a device sends over, and what it may spend: a message gets its number when a link has
been chosen for it."""
