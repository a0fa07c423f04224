"""Servers of their own for what is about time and crowds."""

from tests.servers import new_server

__all__ = ["new_server"]
