"""Issuers of signed tokens: their keys, fetched beside the event loop, and what a token must be to
be believed. Needs PyJWT and cryptography (lasthop[oidc])."""
