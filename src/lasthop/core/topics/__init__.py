"""Topics: who subscribes to which, with which filter, and what is advertised."""
