"""From the parameters of a handler to its payload and back.

What is enqueued is decoded once on the spot with the very decoder that the hands will use, so
that a payload which is taken will fit; later only a change of the handler can break it.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from headway.engine.json_text import json_text
from headway.errors import BadJob, PayloadNoLongerFits, PayloadTooLarge

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Signature:
    def __init__(self, name: str, handler: Callable[..., Any], limit: int) -> None:
        self._name = name
        self._limit = limit
        parameters = inspect.signature(handler).parameters.values()
        for parameter in parameters:
            if parameter.kind not in _NAMED:
                raise TypeError(
                    f"job {name!r} has the parameter {parameter}; a payload is stored by name, "
                    "so give each parameter a name of its own"
                )
        self._positional = tuple(
            each.name for each in parameters if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        self._names = tuple(each.name for each in parameters)
        self.defaults = {
            each.name: each.default
            for each in parameters
            if each.default is not inspect.Parameter.empty
        }
        self._struct = _struct(name, handler, list(parameters))
        self._decoder = msgspec.json.Decoder(self._struct)

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """All by name."""
        if not args:
            return kwargs
        if len(args) > len(self._positional):
            raise BadJob(
                f"job {self._name!r} takes {len(self._positional)} arguments by place, "
                f"not {len(args)}"
            )
        named = dict(zip(self._positional, args, strict=False))
        if kwargs:
            twice = named.keys() & kwargs.keys()
            if twice:
                raise BadJob(f"job {self._name!r} got {', '.join(sorted(twice))} twice")
            named.update(kwargs)
        return named

    def encode(self, arguments: dict[str, Any]) -> str:
        try:
            text = json_text(arguments)
            self._decoder.decode(text)
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            raise BadJob(f"these arguments do not fit job {self._name!r}: {error}") from None
        if len(text) > self._limit:
            raise PayloadTooLarge(
                f"the payload of job {self._name!r} has {len(text)} characters, and {self._limit} "
                "are allowed; store it elsewhere and pass its address"
            )
        return text

    def decode(self, text: str) -> dict[str, Any]:
        """The arguments for the handler. What is missing has the handler's own default."""
        try:
            found = self._decoder.decode(text)
        except msgspec.MsgspecError as error:
            raise PayloadNoLongerFits(
                f"the stored payload does not fit the handler of {self._name!r} any more: {error}"
            ) from None
        values = ((name, getattr(found, name)) for name in self._names)
        return {name: value for name, value in values if value is not msgspec.UNSET}


def _struct(name: str, handler: Callable[..., Any], parameters: list[inspect.Parameter]) -> Any:
    try:
        hints = typing.get_type_hints(handler)
    except Exception:  # an annotation that cannot be resolved here; then nothing is checked
        hints = {}
    fields: list[Any] = []
    for parameter in parameters:
        hint = hints.get(parameter.name, Any)
        if not _is_data(hint):
            hint = Any
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint | msgspec.UnsetType, msgspec.UNSET))
    return msgspec.defstruct(f"Payload of {name}", fields, kw_only=True, forbid_unknown_fields=True)


def _is_data(hint: Any) -> bool:
    """Whether JSON can be read into it."""
    try:
        info = msgspec.inspect.type_info(hint)
        msgspec.json.Decoder(hint | msgspec.UnsetType)
    except TypeError:
        return False
    return not isinstance(info, msgspec.inspect.CustomType)
