"""Benchmarks of the pipeline on the log of a simulated fleet: people with habits, and their
networks."""
