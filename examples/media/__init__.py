"""A mobile media service: a phone keeps photos, and many people want to see them.

The phone answers requests and tells of new photos; its surrogate at the gateway answers what it has
seen before, also while the phone is away.
"""
