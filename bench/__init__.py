"""Benchmarks: each runs us and our peers side by side, in one run, and prints ratios."""
