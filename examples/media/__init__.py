"""A mobile media service: a phone keeps photos, and many people want to see them.

The phone answers requests and publishes the names of new photos; its surrogate at the gateway
answers from its cache, also while the phone is away.
"""
