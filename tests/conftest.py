"""What every test shares."""

import signal

import pytest
from hypothesis import settings

from headway import App
from tests.engine.kit import Diary

pytest_plugins = ["tests.stores", "tests.servers"]

# A run must not depend on luck or on how busy the machine is.
settings.register_profile("default", derandomize=True, deadline=None)
settings.load_profile("default")

# Whoever runs tests in the background lets them ignore it, and so would the programs of tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def app() -> App:
    """For a `World`. Where jobs really run, the directory has an app of its own."""
    return App()


@pytest.fixture
def diary() -> Diary:
    return Diary()
