"""The last hop's rehearsal beside the same model written plainly on SimPy."""
