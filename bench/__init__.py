"""Benchmarks: each measures lasthop and comparable systems in the same run, and prints ratios."""
