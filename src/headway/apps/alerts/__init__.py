"""Alerts: whoever looks after a server is told by webhook what needs attention, and what not."""
