"""Ways to reach a device: channels, which devices open to the gateway, and carriers, which deliver
to devices without a channel."""
