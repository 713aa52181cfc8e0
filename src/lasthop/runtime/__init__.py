"""Run it: settings, the live driver, the command line, metrics."""
