"""A social network without a server of its own: people tell everyone, some, or those who follow
them, and ask around."""
