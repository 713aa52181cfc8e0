"""What of a topic reaches a device: Rank and Expiration against Max and Threshold."""
