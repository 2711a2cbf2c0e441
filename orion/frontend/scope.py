"""What a name of the user's function stands for: a local, a global scalar, a module, a function."""

from __future__ import annotations

import ast
import builtins
from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import FunctionType, ModuleType

import numpy as np

from orion.dataclass import dataclass, field
from orion.errors import UnsupportedLoopError, did_you_mean
from orion.frontend.counted_lists import CountedList
from orion.frontend.locate import span_of
from orion.frontend.outside import MISSING
from orion.frontend.syntax import nodes_of
from orion.ir.nodes import Binary, Call, Const, Count, Dim, Expr, Tuple, Unary, Var
from orion.ir.refuse import unsupported
from orion.ir.unread import left_out, told
from orion.source import Replacement, SourceText, Span, Way

IMPORTS = {"np": "import numpy as np", "numpy": "import numpy", "math": "import math"}
"""Modules whose functions loops may call, by the name that stands for them."""

PLAIN = frozenset({np.ndarray, float, int, bool, complex})
"""The commonest types of arguments: this is asked of all, at every call."""


@dataclass(frozen=True, slots=True)
class Helper:
    """A function of the user's that the loop calls. `defaults` are the values of parameters that may be left out; a
    default that is no scalar must be given all the same."""

    name: str
    params: tuple[str, ...]
    defaults: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that one function can see.

    `variables` are its parameters and everything it assigns; `sparse` are the names it goes over as a sparse array, and
    `counters` those that only count up from zero or more (`counting_names`), `tuples` the lengths of those that are
    tuples (`orion.frontend.tuples`);
    `globals` are the other names, closure first; `helper_of` parses a function that it calls; `constants` collects the
    scalars that it takes from outside, `outside` all names that it takes, by name or by module and name, `arrays` the
    names of arrays from outside, None in a helper, which takes none. `lists` are lists that loops make item by item,
    `places` where the item of an iteration belongs (`orion.frontend.lists`), `counted` those that loops append to now
    and then (`orion.frontend.counted_lists`).
    """

    source: SourceText
    variables: frozenset[str]
    sparse: frozenset[str]
    counters: frozenset[str]
    tuples: Mapping[str, int]
    globals: Mapping[str, object]
    helper_of: Callable[[FunctionType, Span, SourceText], Helper]
    constants: dict[str, int | float | bool] = field(default_factory=dict)
    outside: set[tuple[str, ...]] = field(default_factory=set)
    arrays: dict[str, None] | None = None
    lists: Mapping[str, ast.For] = field(default_factory=dict)
    counted: Mapping[str, CountedList] = field(default_factory=dict)
    places: dict[str, Expr] = field(default_factory=dict)

    @property
    def is_helper(self) -> bool:
        """Whether it is that of a function which the decorated one calls."""
        return self.arrays is None

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword, until: ast.AST | None = None) -> Span:
        return span_of(node, self.source, until)

    def refuse(
        self,
        node: ast.expr | ast.stmt,
        what: str,
        why: str = "",
        hint: str = "",
        *,
        is_wrong: bool = False,
        replaced_by: str | None = None,
        place: ast.expr | ast.stmt | None = None,
        way: Way = Way.HERE,
        replacement: Replacement | None = None,
    ) -> UnsupportedLoopError:
        """The error to raise for a part of the source: one that Orion does not know or, where it `is_wrong`, one that
        Python would not run, or that means something else when compiled. `replaced_by` does the same as the node, or
        as what is at `place`: the hint tells it. It is written in that way. `replacement` is one for another region."""
        found = replacement
        if replaced_by is not None:
            found = Replacement(self.span(place or node), replaced_by, way)
        if found is None and isinstance(node, ast.expr):
            found = left_out(self.span(node), self.source)
            hint = hint if found is None else told(found, hint, self.source)
        span, known = self.span(node), not is_wrong
        return unsupported(what, span, self.source, why=why, hint=hint, is_for_numba=known, replacement=found)

    def free(self, name: str) -> str:
        """A name that the function does not have."""
        while name in self.variables:
            name += "_"
        return name

    def is_counted(self, expr: Expr) -> bool:
        """Whether an integer is never negative: counters, lengths, numbers, and sums and products of these."""
        match expr:
            case Const(int(value)):
                return value >= 0
            case Var(name):
                return name in self.counters
            case Binary("+" | "*" | "//" | "%", left, right):
                return self.is_counted(left) and self.is_counted(right)
            case Call("min" | "max", arguments):
                return all(map(self.is_counted, arguments))
            case Call("len"):
                return True
            case _:
                return isinstance(expr, Dim | Count)

    def is_number(self, expr: Expr) -> bool:
        """Whether an expression is a number for sure, whatever the types of the arguments are."""
        match expr:
            case Const() | Dim() | Count() | Call("int" | "len"):
                return True
            case Var(name):
                return name in self.counters
            case Unary(_, operand):
                return self.is_number(operand)
            case Binary(_, left, right):
                return self.is_number(left) and self.is_number(right)
            case _:
                return False

    def is_plain(self, name: str) -> bool:
        """Whether it is a local name that stands for one value."""
        return name in self.variables and name not in self.tuples

    def variable(self, name: str, span: Span) -> Var | Tuple:
        """A local name: of a tuple, the names of its items."""
        if name not in self.tuples:
            return Var(name, span)
        return Tuple(tuple(Var(self.free(f"{name}_{k}"), span) for k in range(self.tuples[name])), span)

    def value(self, node: ast.expr) -> object:
        """The object that a global name, or a name in a module (`np.linalg.norm`), stands for; MISSING where none."""
        path = _path(node)
        if not path or path[0] in self.variables:
            return MISSING
        found = self.globals.get(path[0], getattr(builtins, path[0], MISSING))
        for attribute in path[1:]:
            found = attribute_of(found, attribute) if isinstance(found, ModuleType) else MISSING
        if found is not MISSING:
            self.outside.add(path)
        return plain_number(found)

    def similar(self, node: ast.expr, otherwise: str) -> str:
        """A hint for a name, or a name in a module, that stands for nothing: one like it, or what to do `otherwise`."""
        path = _path(node)
        if path and path[0] in IMPORTS and self.value(ast.Name(path[0], ast.Load())) is MISSING:
            return f"write `{IMPORTS[path[0]]}` above the function"
        if len(path) == 1:
            return did_you_mean(path[0], {*self.variables, *self.globals, *dir(builtins)}, otherwise)
        owner = self.value(node.value) if isinstance(node, ast.Attribute) else None
        return did_you_mean(path[-1], dir(owner), otherwise) if isinstance(owner, ModuleType) else otherwise


def attribute_of(module: ModuleType, name: str) -> object:
    """What a name in a module stands for; MISSING where it is none. NumPy is not asked for names that it has no longer,
    such as `np.str`: it would warn.
    """
    if module is np and name not in vars(np) and name not in dir(np):
        return MISSING
    return getattr(module, name, MISSING)


def _path(node: ast.expr) -> tuple[str, ...]:
    """The names in `a.b.c`; none for any other expression."""
    match node:
        case ast.Name(name):
            return (name,)
        case ast.Attribute(owner, attribute) if owners := _path(owner):
            return (*owners, attribute)
        case _:
            return ()


def outer_names(function: FunctionType) -> Mapping[str, object]:
    """The global and closure names that the function can see, with their values now."""
    closure: dict[str, object] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a cell that is not assigned yet
            closure[name] = cell.cell_contents
    return ChainMap(closure, function.__globals__)


def constant(value: object, span: Span) -> Expr | None:
    """The expression for a scalar from outside: a Python one as it is, a NumPy one with its dtype; for a tuple of
    scalars that of a tuple; None for anything else.

    >>> from orion.ir.spans import NOWHERE
    >>> constant(np.float32(0.5), NOWHERE).function
    'np.float32'
    """
    if isinstance(value, np.bool | np.integer | np.floating | np.complexfloating):
        item = value.item()
        is_plain = isinstance(item, int | float | complex)
        is_large = isinstance(item, int) and item >= 2**63
        number: Expr = Call("np.uint64", (Const(item, span),), span) if is_large else Const(item, span)
        return Call(f"np.{value.dtype.name}", (number,), span) if is_plain else None
    if type(value) is tuple and value:
        items = [constant(item, span) for item in value]
        known = tuple(item for item in items if item is not None)
        return Tuple(known, span) if len(known) == len(items) else None
    plain = plain_number(value)
    if isinstance(plain, int) and 2**63 <= plain < 2**64:
        return Call("np.uint64", (Const(plain, span),), span)
    return Const(plain, span) if isinstance(plain, bool | int | float | complex) else None


def plain_number(value: object) -> object:
    """A number of a class that is derived from int or float (an `IntEnum`, say) as an int or a float, all else as it
    is: whoever compiles or runs the loop need not know the class.

    >>> import enum
    >>> plain_number(enum.IntEnum("Mode", "FAST SAFE").SAFE), plain_number(np.float64(0.5))
    (2, np.float64(0.5))
    """
    if type(value) in PLAIN or isinstance(value, bool | np.generic) or not isinstance(value, int | float):
        return value
    return int.__index__(value) if isinstance(value, int) else float.__float__(value)


def all_nodes(body: list[ast.stmt]) -> list[ast.AST]:
    """The statements and everything in them."""
    return [node for statement in body for node in nodes_of(statement)]


def assigned_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """Every name that some code binds: assignments, loop variables, nested definitions and imports. `nodes` are all
    that there are in it."""
    stored: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(name, ast.Store() | ast.Del()):
                stored.add(name)
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                stored.add(name)
            case ast.alias(name, alias):
                stored.add(alias or name.partition(".")[0])
            case _:
                pass
    return frozenset(stored)


def iterated_names(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names that a `for` takes keys and values from: sparse arrays."""
    loops = (node for node in nodes if isinstance(node, ast.For))
    taken = (loop.iter for loop in loops if isinstance(loop.target, ast.Tuple) and len(loop.target.elts) == 2)
    return frozenset(source.id for source in taken if isinstance(source, ast.Name))


def counting_names(nodes: Sequence[ast.AST], outer: Mapping[str, object]) -> frozenset[str]:
    """The names that are variables of `for i in range(n)`, `range(1, n)`, `enumerate(v)` alone: never negative."""
    if outer.get("range", range) is not range or outer.get("enumerate", enumerate) is not enumerate:
        return frozenset()
    stored = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    counted = Counter(name for node in nodes if isinstance(node, ast.For) for name in _counter(node))
    return frozenset(name for name, times in counted.items() if times == stored[name])


def _counter(loop: ast.For) -> Iterator[str]:
    match loop.iter, loop.target:
        case ast.Call(ast.Name("range"), [_]), ast.Name(name):
            yield name
        case ast.Call(ast.Name("range"), [ast.Constant(int(start)), _]), ast.Name(name) if start >= 0:
            yield name
        case ast.Call(ast.Name("enumerate"), [_], []), ast.Tuple([ast.Name(name), *_]):
            yield name
