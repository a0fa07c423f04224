"""Headway: a job queue and slot service."""

from importlib.metadata import version

__version__ = version("headway")
