"""Rehearsals of the Push Proxy Gateway: initiators, their notifications, and everything between."""
