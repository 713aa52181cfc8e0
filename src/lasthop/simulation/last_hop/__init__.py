"""The last hop rehearsed: one topic, one device, one user, a year in a moment."""
