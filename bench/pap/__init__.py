"""The Push Proxy Gateway compared with Kannel's: the same pushes, from POST to datagram, in one
run."""
