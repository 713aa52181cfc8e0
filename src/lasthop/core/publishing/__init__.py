"""From a submission to deliveries: whom a message is for, and whether it can be accepted."""
