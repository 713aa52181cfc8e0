"""What comes in over the channels of devices, and what a device hears back."""
