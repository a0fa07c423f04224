"""Small changes to a module that its tests should notice, one at a time.

What is only said (docstrings, messages, annotations, assertions) is left alone: nobody promises it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from types import CodeType

COMPARES: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}

Change = Callable[[], ast.AST]  # makes it in the tree, and gives back what stands there now


@dataclass(frozen=True, slots=True)
class Mutant:
    path: str  # of the module, below the package
    scope: str  # the function that it is in, or "" at the top of the module
    first_line: int  # of that function, decorators included, as its code says
    line: int
    before: str
    after: str
    node: int  # which of the tree, in the order of `ast.walk`
    change: int  # which of the changes that it allows
    is_value: bool = False  # it is in a plain `NAME = …` at the top of the module

    @property
    def place(self) -> str:
        """The same as long as nobody rewrites what it changes."""
        return f"{self.path}:{self.scope}: {self.before}"

    @property
    def name(self) -> str:
        return f"{self.place} -> {self.after}"

    def code(self, source: str, filename: str) -> CodeType:
        tree = ast.parse(source)
        node, parent, field = _placed(tree)[self.node]
        _changes(node, parent, field)[self.change]()
        return compile(ast.fix_missing_locations(tree), filename, "exec")


def mutants_of(path: str, source: str) -> Iterator[Mutant]:
    tree = ast.parse(source)
    scopes = _scopes(tree)
    skipped = _only_said(tree)
    values = _values(tree)
    for number, (node, parent, field) in enumerate(_placed(tree)):
        if id(node) in skipped:
            continue
        scope, first_line = scopes.get(id(node), ("", 0))
        for which in range(len(_changes(node, parent, field))):
            # On a copy, since a change cannot be taken back.
            copy = deepcopy(node)
            there = _changes(copy, ast.Tuple([copy]), "elts")[which]()
            yield Mutant(
                path, scope, first_line, node.lineno, _shown(node), _shown(there), number, which,
                id(node) in values,
            )  # fmt: skip


def _values(tree: ast.Module) -> set[int]:
    plain = (
        each
        for each in tree.body
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
    )
    return {id(node) for each in plain for node in ast.walk(each)}


Place = tuple[ast.AST, ast.AST | None, str]


def _placed(tree: ast.AST) -> list[Place]:
    """Every node that has a line, with its parent and the field that it is in."""
    found: list[Place] = []
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, ast.AST) and hasattr(each, "lineno"):
                    found.append((each, parent, field))
    return found


def _scopes(tree: ast.AST) -> dict[int, tuple[str, int]]:
    """The outermost function around each node: the code that must run for it to matter."""
    found: dict[int, tuple[str, int]] = {}

    def visit(node: ast.AST, names: tuple[str, ...], inside: tuple[str, int] | None) -> None:
        for child in ast.iter_child_nodes(node):
            here = inside
            said = names
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                said = (*names, child.name)
                if inside is None and not isinstance(child, ast.ClassDef):
                    first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                    here = (".".join(said), first)
            if here is not None:
                found[id(child)] = here
            visit(child, said, here)

    visit(tree, (), None)
    return found


def _only_said(tree: ast.AST) -> set[int]:
    """Nodes whose change no caller could notice, or that only make up a message."""
    skipped: set[int] = set()

    def skip(node: ast.AST | None) -> None:
        if node is not None:
            skipped.update(id(each) for each in ast.walk(node))

    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr() | ast.Assert() | ast.Import() | ast.ImportFrom():
                skip(node)
            case ast.Raise(exc=raised):
                skip(raised)
            case ast.AnnAssign(annotation=annotation):
                skip(annotation)
            case ast.FunctionDef(name="__repr__" | "__hash__"):
                skip(node)
            case ast.FunctionDef(args=arguments, returns=returns, decorator_list=decorators):
                for each in [*arguments.args, *arguments.kwonlyargs, arguments.vararg]:
                    skip(each.annotation if each is not None else None)
                for each in [returns, *decorators]:
                    skip(each)
            case ast.ClassDef(bases=bases, decorator_list=decorators):
                if any(isinstance(base, ast.Name) and base.id == "Protocol" for base in bases):
                    skip(node)
                for each in [*bases, *decorators]:
                    skip(each)
            case ast.Expr(value=ast.Constant()):
                skip(node)
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                skip(node)
            case ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")]):
                skip(node)
    return skipped


def _shown(node: ast.AST) -> str:
    text = ast.unparse(node)
    first, _, more = text.partition("\n")
    return f"{first} …" if more else first


def _changes(node: ast.AST, parent: ast.AST | None, field: str) -> list[Change]:
    """What can be done to it, in an order that stays the same."""
    return [*_of_expressions(node, parent, field), *_of_statements(node, parent, field)]


def _of_expressions(node: ast.AST, parent: ast.AST | None, field: str) -> Iterator[Change]:
    match node:
        case ast.Compare(ops=[first, *_]):
            for other in COMPARES[type(first)]:
                yield _setting(node, "ops", [other(), *node.ops[1:]])
        case ast.BinOp(op=operator) if type(operator) in OPERATORS:
            yield _setting(node, "op", OPERATORS[type(operator)]())
        case ast.BoolOp(op=operator):
            yield _setting(node, "op", ast.Or() if isinstance(operator, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _putting(node, parent, field, operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield _putting(node, parent, field, operand)
        case ast.Call(func=ast.Name(id=name)) if name in CALLS:
            yield _setting(node, "func", ast.Name(CALLS[name], ast.Load()), shown=node)
        case ast.Constant(value=bool() as value):
            yield _setting(node, "value", not value)
        case ast.Constant(value=int() | float() as value):
            yield _setting(node, "value", value + 1)
            if value not in (0, 1):
                yield _setting(node, "value", value - 1)
        case ast.IfExp(test=test):
            yield _setting(node, "test", ast.UnaryOp(ast.Not(), test))


def _of_statements(node: ast.AST, parent: ast.AST | None, field: str) -> Iterator[Change]:
    match node:
        case ast.If(test=test) | ast.While(test=test):
            yield _setting(node, "test", ast.UnaryOp(ast.Not(), test))
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield _setting(node, "value", ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            yield _putting(node, parent, field, ast.Pass())
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield _putting(node, parent, field, ast.Pass())
        case ast.AugAssign(op=operator):
            yield _putting(node, parent, field, ast.Pass())
            if type(operator) in OPERATORS:
                yield _setting(node, "op", OPERATORS[type(operator)]())
        case ast.Break():
            yield _putting(node, parent, field, ast.Continue())
        case ast.Continue():
            yield _putting(node, parent, field, ast.Break())


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _setting(node: ast.AST, name: str, value: object, shown: ast.AST | None = None) -> Change:
    def change() -> ast.AST:
        setattr(node, name, value)
        return shown or node

    return change


def _putting(node: ast.AST, parent: ast.AST | None, field: str, other: ast.AST) -> Change:
    """Another node in its place."""

    def change() -> ast.AST:
        assert parent is not None
        there = getattr(parent, field)
        if isinstance(there, list):
            there[next(at for at, each in enumerate(there) if each is node)] = other
        else:
            setattr(parent, field, other)
        ast.copy_location(other, node)
        return other

    return change
