"""Settings for the whole suite."""

from hypothesis import HealthCheck, settings

# How long a draw or an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
