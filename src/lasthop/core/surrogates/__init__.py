"""The messages of apps that have a surrogate: what waits for its word, and what comes of it."""
