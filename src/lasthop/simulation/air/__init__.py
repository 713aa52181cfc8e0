"""Rehearsals over the air: handsets on a network that loses, doubles and delays."""
