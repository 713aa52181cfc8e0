"""The messages of apps that have a surrogate: those that wait for its verdict, and what follows
from it."""
