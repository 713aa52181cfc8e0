"""The Push Over-the-Air protocol, sans I/O: what becomes of a push on its last hop.

Start reading at `transform` (content and headers as a client takes them) with `terminal` (what is
known of the client), then `wsp_server` and `wsp_client` (sessions over `wire.wtp`) and `http`
(OTA-HTTP, where the client is the server).
"""
