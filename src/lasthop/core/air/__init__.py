"""Deliveries over the air, to devices that are not in contact."""
