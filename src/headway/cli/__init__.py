"""The `headway` command: thin functions over the public HTTP API.

Every command that asks or steers does so through the routes of `headway.api`, either of a running
server or of one that is built for the moment in this process. Nothing here knows the store, except
what must work before there can be a server: `migrate`, `doctor` and `serve` itself.
"""

from headway.cli.root import main

__all__ = ["main"]
