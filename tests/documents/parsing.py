"""Whether commands are understood, without doing them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import typer

from headway.cli import root


@cache
def _program() -> Any:
    return typer.main.get_command(root.app)


def misunderstood(arguments: Sequence[str]) -> str:
    """What the command line says is wrong. Empty: nothing."""
    command: Any = _program()
    rest, parent, name = list(arguments), None, "headway"
    try:
        while True:
            context = command.make_context(name, rest, parent=parent)
            left = [*context._protected_args, *context.args]
            if not hasattr(command, "resolve_command") or not left:
                return ""
            name, command, rest = command.resolve_command(context, left)
            parent = context
    except typer.Exit:
        return ""  # --help
    except Exception as error:
        why = error.format_message() if hasattr(error, "format_message") else repr(error)
        return f"headway {' '.join(arguments)}: {why}"


def no_such_route(arguments: Sequence[str], paths: Mapping[str, Mapping[str, Any]]) -> str:
    """Of a line for curl: whether the API has this. `paths` are those of its document."""
    words = list(arguments)
    url = next(word for word in words if re.match(r"(http://)?127\.0\.0\.1:", word))
    path = urlsplit(url if "://" in url else f"http://{url}").path
    method = "post" if "-d" in words else "get"
    if "-X" in words:
        method = words[words.index("-X") + 1].lower()
    for template, methods in paths.items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) and method in methods:
            return ""
    return f"curl: the API has no {method.upper()} {path}"
