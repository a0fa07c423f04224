"""A form with one file, read as it comes: what of the file has come is handed on at once, so that
it is never in memory as a whole.
"""

from __future__ import annotations

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

MOST_PARTS = 20
LONGEST_FIELD = 1_000  # bytes
LONGEST_NAME = 500  # characters of a file's name


class BadForm(ValueError):
    """The form cannot be read."""


class Form:
    """`feed` it the body. `fields` and `filename` are whole when `end` has not complained."""

    def __init__(self, content_type: str, file: str) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise BadForm(f"send a form as multipart/form-data, with the file in the part {file!r}")
        self.fields: dict[str, str] = {}
        self.filename: str | None = None  # of the file, once it has begun
        self._file = file
        self._parts = 0
        self._over = False
        self._header = b""  # the one that is being read
        self._headers: dict[bytes, bytes] = {}
        self._value = b""
        self._name: str | None = None  # of the field that is being read; None: it is the file
        self._pieces: list[bytes] = []
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._part_begins,
                    "on_header_field": self._header_name_comes,
                    "on_header_value": self._header_value_comes,
                    "on_header_end": self._header_ends,
                    "on_headers_finished": self._headers_end,
                    "on_part_data": self._data_comes,
                    "on_part_end": self._part_ends,
                    "on_end": self._ends,
                },
            )
        except FormParserError as error:
            raise BadForm(str(error)) from error

    def feed(self, data: bytes) -> list[bytes]:
        """What was in it of the file."""
        self._pieces = []
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise BadForm(f"this is no valid form: {error}") from error
        return self._pieces

    def end(self) -> None:
        """The body is over. BadForm: the form is not."""
        if not self._over:
            raise BadForm("the form breaks off; send it whole")
        if self.filename is None:
            raise BadForm(f"the form has no part {self._file!r}; that is the file")

    # ------------------------------------------------------------------ from the parser

    def _part_begins(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise BadForm(f"a form has at most {MOST_PARTS} parts")
        self._headers, self._value = {}, b""

    def _header_name_comes(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value_comes(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_ends(self) -> None:
        self._headers[self._header.lower()] = self._value
        self._header = self._value = b""

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if name != self._file:
            self._name = name
            return
        if self.filename is not None:
            raise BadForm(f"the form has two parts {name!r}; send one file at a time")
        told = options.get(b"filename", b"upload").decode("utf-8", "replace")
        self._name, self.filename = None, told.replace("\0", "")[:LONGEST_NAME]

    def _data_comes(self, data: bytes, start: int, end: int) -> None:
        if self._name is None:
            self._pieces.append(data[start:end])
            return
        self._value += data[start:end]
        if len(self._value) > LONGEST_FIELD:
            raise BadForm(f"the field {self._name!r} has more than {LONGEST_FIELD} bytes")

    def _part_ends(self) -> None:
        if self._name is not None:
            self.fields[self._name] = self._value.decode("utf-8", "replace")
        self._value = b""

    def _ends(self) -> None:
        self._over = True
