"""What every test shares."""

from hypothesis import settings

pytest_plugins = ["tests.stores"]

# A run must not depend on luck or on how busy the machine is.
settings.register_profile("default", derandomize=True, deadline=None)
settings.load_profile("default")
