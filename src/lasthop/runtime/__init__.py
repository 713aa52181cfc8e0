"""Everything that runs a gateway: the settings, the live driver, the command line, the metrics."""
