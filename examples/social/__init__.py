"""A social network without a server of its own: members send to everyone, to groups and to their
followers, and ask everyone questions."""
