"""What a client asks: names with values, in the address, in a form, or in both. Some do not escape
what they put into the address, so the form goes first.
"""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import parse_qsl, quote

from fastapi import Depends, Request

from headway.apps.feeds.greader.errors import bad
from headway.apps.feeds.greader.ids import Stream, entry_of, stream_of

MAX_FIELDS = 20_000
MAX_VALUE = 4_000  # characters
ASCII = bytes(range(128))
UNITS = (1.0, 1e3, 1e6, 1e9)  # of a second
LATEST_S = 1e11  # the year 5138; a larger number is no time in seconds
EXACT_S = 2e-6  # clients are told times in whole microseconds; a double is not quite that exact

FIELDS = {
    "s": "The stream, such as feed/ID, user/-/label/NAME or user/-/state/com.google/starred.",
    "i": "An item, in any of the three ways of writing its id; may be repeated.",
    "n": "How many at most.",
    "r": "o: the oldest first. In edits: what is taken away; may be repeated.",
    "a": "What is added; may be repeated.",
    "c": "The continuation of the last answer, for what follows it.",
    "ot": "Only what came at this time or later, in seconds since 1970; microseconds will do.",
    "nt": "Only what came at this time or before, likewise.",
    "xt": "Leave out what is in this stream; may be repeated.",
    "it": "Only what is in this stream, too; may be repeated.",
    "ts": "Only what came at this time or before, in microseconds since 1970; seconds will do.",
    "ac": "subscribe, edit or unsubscribe.",
    "t": "The title of the feed. For rename-tag and disable-tag: the name of the label.",
    "dest": "The stream that the label becomes.",
    "quickadd": "The address of a feed, or of a page that names one.",
    "Email": "Anything; the token says who you are.",
    "Passwd": "A token of Headway.",
    "T": "What /token has answered; it is not looked at.",
    "output": "json; nothing else is known.",
}


class Asked:
    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def all(self, *names: str) -> list[str]:
        """In their order."""
        return [value for name, value in self._pairs if name in names]

    def one(self, *names: str) -> str:
        """The first that is not empty; empty: there is none."""
        return next((value for value in self.all(*names) if value), "")

    def number(self, name: str, usual: float) -> float:
        text = self.one(name)
        if not text:
            return usual
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not -1e20 < number < 1e20:
            raise bad(f"{name} is a number, not {text[:50]!r}")
        return number

    def since(self, name: str) -> float | None:
        """A time in seconds since 1970. None: nothing was said, or 0."""
        found = self._time(name)
        return None if found is None else found[0]

    def until(self, name: str) -> float | None:
        """The end of such a time, which is as long as it is exact."""
        found = self._time(name)
        return None if found is None else found[0] + max(1 / found[1], EXACT_S)

    def _time(self, name: str) -> tuple[float, float] | None:
        """In seconds, and how many of its units a second has. Nobody has ever said what the unit
        is, so clients send any; the size of the number tells.
        """
        number = self.number(name, 0.0)
        unit = next((each for each in UNITS if number / each < LATEST_S), UNITS[-1])
        return (number / unit, unit) if number else None

    def streams(self, *names: str) -> list[Stream]:
        return [stream_named(each) for each in self.all(*names) if each]

    def entries(self, limit: int) -> list[int]:
        """Of the items that are named, each once. 0 stands for one that never was."""
        texts = self.all("i")
        if len(texts) > limit:
            raise bad(f"{len(texts)} items are too many; name at most {limit} at once")
        found: dict[int, None] = {}
        for text in texts:
            entry = entry_of(text.strip())
            if entry is None:
                raise bad(f"{text[:60]!r} is no id of an item")
            found[entry] = None
        return list(found)


def stream_named(text: str) -> Stream:
    found = stream_of(text)
    if found is None:
        raise bad(f"{text[:60]!r} is no stream; write feed/ID, user/-/label/NAME or "
                  "user/-/state/com.google/NAME")  # fmt: skip
    return found


async def _asked(request: Request) -> Asked:
    return Asked([*_pairs(await request.body()), *_pairs(request.scope["query_string"])])


def _pairs(said: bytes) -> list[tuple[str, str]]:
    # Some clients send letters as they are, and not as a form writes them.
    text = quote(said, safe=ASCII)
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:  # also when it is no UTF-8
        raise bad(f"send a form in UTF-8, with at most {MAX_FIELDS} fields") from None
    if any("\x00" in value or len(value) > MAX_VALUE for _, value in pairs):
        raise bad(f"a value has at most {MAX_VALUE} characters, and none of them is NUL")
    return pairs


TheAsked = Annotated[Asked, Depends(_asked)]


# ---------------------------------------------------------------------- for the document


def in_query(*names: str) -> dict[str, Any]:
    """`openapi_extra=` of a route that takes these in its address."""
    return {"parameters": [
        {"name": name, "in": "query", "required": False, "description": FIELDS[name],
         "schema": {"type": "array", "items": {"type": "string"}}}
        for name in (*names, "output")
    ]}  # fmt: skip


def in_form(*names: str) -> dict[str, Any]:
    """The same for one that takes them in a form."""
    fields = {
        name: {"type": "array", "items": {"type": "string"}, "description": FIELDS[name]}
        for name in (*names, "T")
    }
    schema = {"type": "object", "properties": fields}
    return {"requestBody": {
        "description": "The same may stand in the address.",
        "content": {"application/x-www-form-urlencoded": {"schema": schema}},
    }}  # fmt: skip
