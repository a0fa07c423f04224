"""The rules that keep the house clean.

Each rule is a function from text (or names) to a list of complaints. No rule reads a file: the
tests do that, and so each rule can also be shown an offender.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import PurePosixPath

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
MAX_TARGETS = 15

UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|NotImplementedError)\b")

# The lookbehind lets relative paths and routes such as `/v1/work` through.
MACHINE_PATH = re.compile(r"(?<![\w.~)}-])/(?:home|root|work|Users)(?![\w-])")
# `/{2}` rather than two slashes, so that this line does not break its own rule.
REGISTRY_ADDRESS = re.compile(r"pypi\.org|pythonhosted\.org|file:/{2}|\w:/{2}\S*/simple\b")

VAGUE_WORDS = frozenset({"helper", "helpers", "manager", "managers", "misc", "util", "utils"})

# The core is a function of its inputs, so it can be replayed: no clock, no chance, no world.
IMPURE_MODULES = frozenset(
    {
        "asyncio",
        "io",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "secrets",
        "socket",
        "sqlite3",
        "subprocess",
        "threading",
        "time",
    }
)
CLOCK_READINGS = frozenset({"now", "today", "utcnow"})

MAKE_TARGET = re.compile(r"^([a-z][\w-]*)\s*:(?!=)(.*)$")
DECISION_NAME = re.compile(r"(\d{4})-[a-z0-9]+(?:-[a-z0-9]+)*\.md")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(source: str) -> ast.Module:
    """Every rule looks at every file."""
    return ast.parse(source)


def missing_docstring(source: str) -> list[str]:
    if ast.get_docstring(parsed(source)):
        return []
    return ["has no module docstring; say in one line what it is for"]


def too_many_lines(source: str) -> list[str]:
    count = len(source.splitlines())
    if count <= MAX_FILE_LINES:
        return []
    return [f"has {count} lines, over {MAX_FILE_LINES}; split it by responsibility"]


def long_functions(source: str) -> list[str]:
    return [
        f"line {function.lineno}: {function.name} has {_line_count(function)} lines, "
        f"over {MAX_FUNCTION_LINES}; name its parts and take them out"
        for function in ast.walk(parsed(source))
        if isinstance(function, Function) and _line_count(function) > MAX_FUNCTION_LINES
    ]


def _line_count(function: Function) -> int:
    # The parser fills in end_lineno for all that it parses; its type is only for made-up nodes.
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def unfinished_work(text: str) -> list[str]:
    return _matching_lines(UNFINISHED, text, "is unfinished; finish it or take it out")


def machine_paths(text: str) -> list[str]:
    return _matching_lines(MACHINE_PATH, text, "is a path on one machine; make it relative")


def registry_addresses(text: str) -> list[str]:
    return _matching_lines(
        REGISTRY_ADDRESS, text, "is a registry address; which one is used is for the installer"
    )


def lock_addresses(text: str) -> list[str]:
    return _matching_lines(
        re.compile("://"), text, "is an address; run `make lock`, which writes none"
    )


def _matching_lines(pattern: re.Pattern[str], text: str, complaint: str) -> list[str]:
    return [
        f"line {number}: {match.group()!r} {complaint}"
        for number, line in enumerate(text.splitlines(), start=1)
        for match in pattern.finditer(line)
    ]


def vague_name(path: str) -> list[str]:
    return [
        f"is called {part!r}; name what it does instead"
        for part in PurePosixPath(path).parts
        if VAGUE_WORDS.intersection(re.split(r"[._-]", part.lower()))
    ]


def sleeps(source: str) -> list[str]:
    if "sleep" not in source:
        return []
    tree = parsed(source)
    called_as = _names_of_modules(tree, {"asyncio", "time"})
    return [
        f"line {line}: sleeps; let the test move the clock, or wait for the event itself"
        for line in sorted([*_sleep_calls(tree, called_as), *_sleep_imports(tree)])
    ]


def _names_of_modules(tree: ast.AST, modules: set[str]) -> dict[str, str]:
    """What each of the modules is called here, `import time as t` included."""
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in modules
    }


def _sleep_calls(tree: ast.AST, called_as: dict[str, str]) -> Iterator[int]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="sleep"), args=args):
                module = called_as.get(name)
                # asyncio.sleep(0) only lets other tasks run: it does not wait for a moment.
                if module == "time" or (module == "asyncio" and not _is_zero(args)):
                    yield node.lineno


def _is_zero(arguments: list[ast.expr]) -> bool:
    match arguments:
        case [ast.Constant(value=int() | float() as seconds)]:
            return seconds == 0
    return False


def _sleep_imports(tree: ast.AST) -> Iterator[int]:
    # A bare `sleep` would hide from the search for calls, so the import itself is the offence.
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in {"asyncio", "time"}:
            yield from (node.lineno for alias in node.names if alias.name == "sleep")


def impure_core(source: str, package: str) -> list[str]:
    """Complaints about a module of the core; `package` is the package that holds it."""
    tree = parsed(source)
    return [*_impure_imports(tree, package), *_clock_readings(tree)]


def _impure_imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _import_complaints(node.lineno, alias.name, member=None)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute_module(node, package)
            for alias in node.names:
                yield from _import_complaints(node.lineno, module, member=alias.name)


def _absolute_module(node: ast.ImportFrom, package: str) -> str:
    if node.level == 0:
        return node.module or ""
    parts = package.split(".")
    kept = parts[: len(parts) - node.level + 1]
    return ".".join([*kept, node.module] if node.module else kept)


def _import_complaints(line: int, module: str, member: str | None) -> Iterator[str]:
    top = module.partition(".")[0]
    if top == "headway":
        imported = f"{module}.{member}" if member else module
        if not f"{imported}.".startswith("headway.core."):
            yield f"line {line}: imports {imported}; the core knows nothing above itself"
    elif top not in sys.stdlib_module_names:
        yield f"line {line}: imports {module}; the core needs only the standard library"
    elif top in IMPURE_MODULES:
        yield f"line {line}: imports {module}; pass what it would give as an argument"
    elif top == "random" and member != "Random":
        yield f"line {line}: imports random; write `from random import Random` and be given one"


def _clock_readings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name in CLOCK_READINGS:
                yield f"line {node.lineno}: calls .{name}(); pass the moment as an argument"


def undocumented_targets(makefile: str) -> list[str]:
    matches = (MAKE_TARGET.match(line) for line in makefile.splitlines())
    return [
        f"target {match.group(1)!r} has no `## ` comment; `make help` would hide it"
        for match in matches
        if match and "## " not in match.group(2)
    ]


def too_many_targets(makefile: str) -> list[str]:
    targets = [line for line in makefile.splitlines() if MAKE_TARGET.match(line)]
    if len(targets) <= MAX_TARGETS:
        return []
    return [f"has {len(targets)} targets, over {MAX_TARGETS}; keep those that people use"]


def misnumbered_decisions(names: Iterable[str]) -> list[str]:
    complaints = []
    numbers = []
    for name in sorted(names):
        match = DECISION_NAME.fullmatch(name)
        if match:
            numbers.append(int(match.group(1)))
        else:
            complaints.append(f"{name!r} is not called NNNN-title.md")
    for expected, number in enumerate(numbers, start=1):
        if number != expected:
            complaints.append(f"found number {number:04} where {expected:04} should be")
            break
    return complaints
