"""Ways to reach a device: each channel is one live attempt at talking over one link."""
