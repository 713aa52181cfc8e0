"""The last-hop simulator compared with the same model written plainly on SimPy."""
