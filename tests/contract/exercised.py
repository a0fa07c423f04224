"""Which operations the contract tests call, read from their source.

A call is a method and a path side by side: `api.get("/api/jobs")`, `send("PUT", f"{FEEDS}/{id}")`,
a row `("POST", "/api/queue/pause")` of a table. A name stands for what the module, or one that it
imports from, gave it; any other value in a path stands for a parameter, or for a word that the same
module says somewhere, as in `f"/api/lanes/{name}/{verb}"`. What clients of OpenAI's call by methods
of their own is in a table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

from tests.contract.document import Document, Operation

HERE = Path(__file__).parent
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}
ANYTHING = "\0"  # in a path
OPENAI = {
    "files.create": "POST /v1/files", "files.list": "GET /v1/files",
    "files.retrieve": "GET /v1/files/{id}", "files.delete": "DELETE /v1/files/{id}",
    "files.content": "GET /v1/files/{id}/content",
    "batches.create": "POST /v1/batches", "batches.list": "GET /v1/batches",
    "batches.retrieve": "GET /v1/batches/{id}", "batches.cancel": "POST /v1/batches/{id}/cancel",
    "embeddings.create": "POST /v1/embeddings",
}  # fmt: skip


def exercised(document: Document) -> set[str]:
    """The names of the operations that the tests in this directory call."""
    alike: dict[tuple[str, int], list[Operation]] = {}
    for operation in document.operations:
        alike.setdefault((operation.method, operation.path.count("/")), []).append(operation)
    found = set()
    for path in sorted(HERE.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        found |= {name for call, name in OPENAI.items() if f".{call}(" in source}
        for method, called in set(calls_in(ast.parse(source))):
            for operation in alike.get((method, called.count("/")), []):
                if _means(called, operation.path, source):
                    found.add(operation.name)
    return found


def _means(path: str, template: str, source: str) -> bool:
    return all(
        bool(part) if "{" in want else part == want or (part == ANYTHING and _says(source, want))
        for part, want in zip(path.split("/"), template.split("/"), strict=True)
    )


def _says(source: str, word: str) -> bool:
    return re.search(rf"""["' /]{re.escape(word)}["' /{{]""", source) is not None


def calls_in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    known = _constants(tree)
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.Module):
            names = known if isinstance(scope, ast.Module) else {**known, **_assigned(scope, known)}
            for node in _within(scope):
                yield from _calls(node, names)


def _within(scope: ast.AST) -> Iterator[ast.AST]:
    """What is in it, but not in a function of its own."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, ast.FunctionDef):
            yield from _within(child)


def _calls(node: ast.AST, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Call(func=ast.Attribute(attr=verb), args=arguments):
            sides = list(arguments)
            if verb.upper() in METHODS and arguments:
                yield from _pair(verb.upper(), arguments[0], names)
        case ast.Call(args=arguments):
            sides = list(arguments)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            sides = list(elements)
        case _:
            return
    for one, other in pairwise(sides):
        if isinstance(one, ast.Constant) and one.value in METHODS:
            yield from _pair(str(one.value), other, names)


def _pair(method: str, path: ast.expr, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    text = _text(path, names)
    if text is not None and text.startswith("/"):
        yield method, re.split(r"[?#]", text)[0]


def _text(node: ast.expr, names: dict[str, str]) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=name):
            return names.get(name)
        case ast.JoinedStr(values=parts):
            return "".join(
                (_text(part.value, names) or ANYTHING)
                if isinstance(part, ast.FormattedValue)
                else _text(part, names) or ANYTHING
                for part in parts
            )
    return None


def _constants(tree: ast.Module) -> dict[str, str]:
    """Texts that the module names, or takes from a neighbour."""
    names: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.contract."):
            theirs = _constants_of((node.module or "").rpartition(".")[2])
            for alias in node.names:
                if alias.name in theirs:
                    names[alias.asname or alias.name] = theirs[alias.name]
    return names | _assigned(tree, names)


@cache
def _constants_of(name: str) -> dict[str, str]:
    return _constants(ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8")))


def _assigned(scope: ast.AST, names: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in _within(scope):
        for name, value in _pairs(node):
            text = _text(value, names | found)
            if text is not None:
                found[name] = text
    return found


def _pairs(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            for target, value in zip(targets, values, strict=False):
                if isinstance(target, ast.Name):
                    yield target.id, value
