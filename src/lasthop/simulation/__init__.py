"""Rehearse it: virtual time, bad links, crashes; the gateway and device code is the real one."""
