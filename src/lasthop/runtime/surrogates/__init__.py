"""The worker processes of apps that have a surrogate, and those who look after them."""
