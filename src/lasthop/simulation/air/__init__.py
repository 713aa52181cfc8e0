"""Rehearsals over the air: handsets on a network that loses, duplicates and delays datagrams."""
