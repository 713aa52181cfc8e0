"""Groups and queues: who belongs to them, and messages whose deliveries depend on each other."""
