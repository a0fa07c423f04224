"""Calls that wait for capacity: jobs of the engine, single calls, and callbacks when they end."""
