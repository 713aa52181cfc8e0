"""What comes in over the channels of devices, and how the gateway answers."""
