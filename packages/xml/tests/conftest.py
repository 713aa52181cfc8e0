"""Settings for the whole suite."""

import sys

from hypothesis import HealthCheck, settings

# The package needs no gateway: where one is installed all the same, nobody can import it.
sys.modules["lasthop"] = None  # type: ignore[assignment]

# How long a draw or an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
