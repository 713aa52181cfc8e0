"""Receiving topics over plain HTTP: JSON lines, server-sent events, text, and WebSocket."""
