"""Rehearsals: virtual time, bad links and crashes around the gateway and device code of the
product."""
