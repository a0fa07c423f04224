"""The socket that a server listens on, which outlives the process when that begins again."""

from __future__ import annotations

import logging
import os
import socket
import sys

from headway.api.config import Config
from headway.errors import BadSettings

logger = logging.getLogger("headway.server")

BACKLOG = 2_048
LISTENING = "HEADWAY_LISTENING_SOCKET"  # for the process that begins again
ANYWHERE = frozenset({"0.0.0.0", "::", ""})


def listen(config: Config) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((config.host, config.port))
    except OSError as error:
        listening.close()
        raise BadSettings(
            f"{config.host}:{config.port} cannot be used: {error.strerror}; name another with "
            "--host and --port"
        ) from error
    listening.listen(BACKLOG)
    listening.set_inheritable(True)
    return listening


def inherited() -> socket.socket | None:
    """The socket of the time before this process began again."""
    number = os.environ.pop(LISTENING, "")
    return socket.socket(fileno=int(number)) if number else None


def begin_again(listening: socket.socket) -> None:
    """Another server leads, since this one was away for too long, or could not. What it knew is of
    the past, so the process begins anew, and follows. Whoever connects meanwhile waits at the same
    socket.
    """
    logger.warning("another server shall lead; this one begins again, and follows it")
    os.environ[LISTENING] = str(listening.fileno())
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def address_of(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def reachable(host: str) -> str:
    """A name by which other machines may know this one, if it listens everywhere."""
    return socket.gethostname() if host in ANYWHERE else host
