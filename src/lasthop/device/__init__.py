"""The device's side of the hop: order, de-duplicate, store, acknowledge, and hand over.

`session` decides everything and owns no socket, task, clock or disk; `inbox` says what a durable
store of messages has to do; `client` runs both on asyncio. Applications use `client.Device`.
"""
