"""A rehearsal fleet for the pipeline: people with habits, their networks, and the log of it."""
