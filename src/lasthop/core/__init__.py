"""The gateway itself, without I/O: it owns every message from acceptance until it is done."""
