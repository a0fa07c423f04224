"""The server's own OpenAPI document, as a judge of its answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import httpx2
import jsonschema_rs

PROBLEM = "application/problem+json"


@dataclass(frozen=True)
class Operation:
    method: str
    path: str  # with its parameters in braces
    said: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"

    def at(self, **values: object) -> str:
        """Its path with these values, or something plausible."""
        usual = {"id": 1, "subscription": 7, **values}
        named = {name: usual.get(name, "some") for name in re.findall(r"\{(\w+)\}", self.path)}
        return self.path.format(**named)


class Document:
    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.operations = [
            Operation(method.upper(), path, said)
            for path, methods in content["paths"].items()
            for method, said in methods.items()
        ]
        # A path without parameters goes before one that it would fit, as it does in the server.
        ordered = sorted(self.operations, key=lambda each: each.path.count("{"))
        self._patterns = [(_pattern(each.path), each) for each in ordered]
        self._validators: dict[str, Any] = {}

    def operation(self, method: str, path: str) -> Operation | None:
        return next((each for pattern, each in self._patterns
                     if each.method == method and pattern.fullmatch(path)), None)  # fmt: skip

    def judge(self, answer: httpx2.Response) -> None:
        """The status is documented, and the body is what the document says."""
        operation = self.operation(answer.request.method, answer.request.url.path)
        if operation is None:
            return  # a page, or nothing at all
        where = f"{operation.name} -> {answer.status_code}"
        promised = operation.said["responses"].get(str(answer.status_code))
        assert promised is not None, f"{where} is not documented: {answer.text[:500]}"
        kind = answer.headers.get("content-type", "").partition(";")[0]
        content = promised.get("content", {})
        if not content:
            assert not answer.content, f"{where} has a body: {answer.text[:500]}"
            return
        assert kind in content, f"{where} is {kind}, not one of {', '.join(content)}"
        if kind.endswith("json"):
            self._check(where, content[kind]["schema"], answer.json())

    def _check(self, where: str, schema: dict[str, Any], value: Any) -> None:
        key = f"{where}: {schema}"
        if key not in self._validators:
            self._validators[key] = jsonschema_rs.Draft202012Validator(
                {**schema, "components": self.content["components"]}
            )
        found = next(self._validators[key].iter_errors(value), None)
        assert found is None, f"{where}: {found}"


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{\w+\}", path)
    return re.compile("[^/]+".join(re.escape(part) for part in parts))


_known: list[Document] = []


def document_of(url: str) -> Document:
    """What the first server says that anybody asks. It takes a server half a second to write it,
    and all of them run the same program.
    """
    if not _known:
        _known.append(asked_for_document(url))
    return _known[0]


def asked_for_document(url: str) -> Document:
    # To write it takes half a second of a processor, of which there may be none.
    return Document(httpx2.get(f"{url}/openapi.json", timeout=60).raise_for_status().json())
