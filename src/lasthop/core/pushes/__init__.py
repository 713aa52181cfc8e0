"""Pushes of PAP: addresses, reports and result notifications."""
