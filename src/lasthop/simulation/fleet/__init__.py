"""A fleet of devices with owners who read, simulated day by day with the real feeds and
policies."""
