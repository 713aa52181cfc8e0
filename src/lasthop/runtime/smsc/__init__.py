"""A small SMSC on this machine: for tests, for the demo, and for people without an operator."""
