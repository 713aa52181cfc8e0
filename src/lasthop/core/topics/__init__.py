"""Topics: which devices subscribe to which topic, with which filter, and which topics are
advertised."""
