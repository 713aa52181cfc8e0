"""Which events of a ranked topic reach a device: Rank and Expiration against Max and Threshold."""
