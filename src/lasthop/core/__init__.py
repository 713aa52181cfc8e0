"""The gateway itself, sans-I/O: it owns every message from acceptance until it is done."""
