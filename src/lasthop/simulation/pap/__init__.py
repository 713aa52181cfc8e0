"""Rehearsals of the Push Proxy Gateway: initiators, their result notifications, and all faults
between."""
