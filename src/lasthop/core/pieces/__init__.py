"""Bodies and streams that travel in pieces, between devices and the gateway."""
