"""Rehearsals of the last-hop paper: one topic, one device, one user, a year in a moment."""
