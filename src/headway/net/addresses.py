"""What the rest of Headway says about addresses: `ranges`, with its names and its errors."""

from __future__ import annotations

import httpx2

from headway.errors import BadSettings
from headway.net import ranges
from headway.net.ranges import Address, Network, closed_because

__all__ = ["Address", "Allowed", "Network", "closed_because"]


class Allowed(ranges.Allowed):
    __doc__ = ranges.Allowed.__doc__

    error = BadSettings

    @staticmethod
    def ascii_name(host: str) -> str:
        try:
            return httpx2.URL(scheme="http", host=host).raw_host.decode("ascii")
        except httpx2.InvalidURL:
            return ""
