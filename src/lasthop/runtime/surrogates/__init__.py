"""The worker processes of apps that have a surrogate, and their supervisors."""
