"""The Push Proxy Gateway against Kannel's: the same pushes, from POST to datagram, in one run."""
