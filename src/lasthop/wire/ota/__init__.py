"""The Push Over-the-Air protocol without I/O: a push on its way from the gateway to a client.

Start reading at `transform` (content and headers as a client accepts them) with `terminal` (what is
known of the client), then `wsp_server` and `wsp_client` (sessions over `wire.wtp`) and `http`
(OTA-HTTP, where the client is the server).
"""
