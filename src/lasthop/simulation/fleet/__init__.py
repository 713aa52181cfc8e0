"""A fleet of devices that people look at, lived through with the real engine."""
