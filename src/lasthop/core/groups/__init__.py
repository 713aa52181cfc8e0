"""Groups and queues: their members, and messages whose deliveries depend on each other."""
