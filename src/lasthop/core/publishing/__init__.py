"""From a submission to deliveries: which devices a message is for, and whether it can be
accepted."""
