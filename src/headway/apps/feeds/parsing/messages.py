"""What the server and its workers say to each other: four bytes of length, then msgpack."""

from __future__ import annotations

import struct
from typing import TypeAlias

import msgspec
from msgspec import Struct

from headway.apps.feeds.parsing.model import Candidate, ParsedFeed

LENGTH = struct.Struct(">I")
OUT_OF_MEMORY = 3  # the code with which a worker ends that cannot even say so
READY = b"!"  # the first that a worker says, once


class Parse(Struct, tag="parse", frozen=True):
    document: bytes
    url: str
    content_type: str = ""


class Discover(Struct, tag="discover", frozen=True):
    page: bytes
    url: str
    content_type: str = ""


class Parsed(Struct, tag="parsed", frozen=True):
    feed: ParsedFeed


class Discovered(Struct, tag="discovered", frozen=True):
    candidates: tuple[Candidate, ...]


class Refused(Struct, tag="refused", frozen=True):
    """It could not be done; `kind` is that of the error."""

    kind: str
    message: str


Wish: TypeAlias = Parse | Discover
Answer: TypeAlias = Parsed | Discovered | Refused

_encoder = msgspec.msgpack.Encoder()
_wishes: msgspec.msgpack.Decoder[Wish] = msgspec.msgpack.Decoder(Parse | Discover)
_answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Parsed | Discovered | Refused)


def framed(message: Wish | Answer) -> bytes:
    body = _encoder.encode(message)
    return LENGTH.pack(len(body)) + body


def wish_in(body: bytes) -> Wish:
    return _wishes.decode(body)


def answer_in(body: bytes | bytearray) -> Answer:
    """Raises `msgspec.DecodeError`: a worker may have been led astray by what it read."""
    return _answers.decode(body)
