"""The values of cookies, taken out of everything that the program says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus, unquote

MASK = "[redacted]"
MIN_SECRET = 6  # characters; hiding something shorter would tear every text apart
MIN_IN_ADDRESS = 16  # of one that is taken out of an address too: "english" is no secret there


class Hiding:
    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {
            form
            for secret in secrets
            for form in (secret, quote(secret, safe=""), quote(secret), quote_plus(secret),
                         unquote(secret))
            if len(secret) >= MIN_SECRET and len(form) >= MIN_SECRET
        }  # fmt: skip
        # The longest first: one may be the beginning of another.
        self._forms = sorted(forms, key=lambda form: (-len(form), form))
        self._long = [form for form in self._forms if len(form) >= MIN_IN_ADDRESS]

    def text(self, text: str) -> str:
        return _without(self._forms, text)

    def address(self, text: str) -> str:
        """The same for an address that has to work: only what can be nothing but a secret."""
        return _without(self._long, text)

    def everywhere(self, value: Any) -> Any:
        """In all texts of a JSON value, names included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key): self.everywhere(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.everywhere(each) for each in value]
        return value


def _without(forms: list[str], text: str) -> str:
    for form in forms:
        if form in text:
            text = text.replace(form, MASK)
    return text
