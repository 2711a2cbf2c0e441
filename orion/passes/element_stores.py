"""Values of elements that a loop over a sparse array stores, as a scalar of each iteration.

    for (d, w), z in tokens:            for (d, w), tokens_value in tokens:
        tokens[d, w] = z + 1                z = tokens_value
        n[d] += tokens[d, w]                tokens_value = np.uint8(z + 1)
                                            store:(0, tokens_value)
                                            n[d] += tokens_value

Only types tell a sparse array from a dense one, and the dtypes of its values, to which what is stored is converted. The
scalar belongs to its iteration, as do the values of an element whose key no other has, which each call looks at: so
iterations are in conflict through other arrays alone. `STORE` writes the scalar to the array.

Every other subscript of a sparse array is refused: which element it is of, if any, takes a search, and other iterations
may store it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orion.dataclass import dataclass, replace
from orion.ir.assigned import assigned_names
from orion.ir.cures import over_elements
from orion.ir.function import ByKey, Function, in_users_words
from orion.ir.nodes import (
    STORE,
    Assign,
    Binary,
    Call,
    Const,
    Elements,
    Evaluate,
    Expr,
    For,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    every,
    walk,
)  # fmt: skip
from orion.ir.printer import print_expr
from orion.ir.refuse import unsupported
from orion.ir.renaming import fresh
from orion.ir.rewriting import expand, rewrite, with_new
from orion.ir.types import SparseType, Types
from orion.source import Span

Target = Var | Subscript


def elements_by_key(function: Function) -> frozenset[str]:
    """The names that a function goes through by elements and gives subscripts, before anything is known of types: where
    they are sparse arrays it finds elements by their keys."""
    iterated = {space.array for space in every(Elements, *function.body)}
    return frozenset(part.base.name for part in every(Subscript, *function.body) if part.base.name in iterated)


def with_stored_elements(function: Function, types: Types) -> Function:
    """The function with values of elements, where it stores or reads them by their keys, as scalars of iterations."""
    sparse = {name: kind for name, kind in types.items() if isinstance(kind, SparseType)}
    if not any(part.base.name in sparse for part in every(Subscript, *function.body)):
        return function
    taken = {*function.params, *assigned_names(function.body)}
    names: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}

    def changed(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case For(Elements(array) as space, body) if array in sparse and _mentions(array, body):
                key = array, space.keys
                if key not in names:
                    numbers = range(len(sparse[array].value_dtypes))
                    wanted = [f"{array}_value" if len(numbers) == 1 else f"{array}_value_{k}" for k in numbers]
                    names[key] = tuple(fresh(name, taken) for name in wanted)
                return (_Loop(function, space, sparse[array], names[key], taken).changed(statement),)
        return (statement,)

    found = with_new(function, body=expand(function.body, changed))
    found = with_new(found, by_key=tuple(one for key, own in names.items() for one in _by_key(*key, own)))
    _check(found, sparse)
    return found


def _by_key(array: str, keys: tuple[str, ...], names: tuple[str, ...]) -> Iterator[ByKey]:
    element = f"{array}[{', '.join(keys)}]"
    for number, name in enumerate(names):
        yield ByKey(name, array, element if len(names) == 1 else f"{element}[{number}]")


def _mentions(array: str, body: tuple[Stmt, ...]) -> bool:
    return any(part.base.name == array for part in every(Subscript, *body))


def _targets(statement: Assign | Update) -> tuple[Target, ...]:
    target = statement.target
    return tuple(one for one in target.items if isinstance(one, Target)) if isinstance(target, Tuple) else (target,)


# ---------------------------------------------------------------- one loop


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop over the elements of `space.array`, whose values are the scalars `names` in each iteration."""

    function: Function
    space: Elements
    kind: SparseType
    names: tuple[str, ...]
    taken: set[str]

    def changed(self, loop: For) -> For:
        if len(self.space.values) != len(self.names) or self.space.single != self.kind.single:
            return loop  # types tell what is wrong with it
        self.check(loop)
        given = [
            Assign(Var(name, loop.span), Var(own, loop.span), loop.span)
            for name, own in zip(self.space.values, self.names, strict=True)
        ]
        stored = expand(loop.body, lambda statement: tuple(self.statement(statement)))
        body = tuple(rewrite(statement, self.read) for statement in stored)
        return replace(loop, space=replace(self.space, values=self.names), body=(*given, *body))

    def check(self, loop: For) -> None:
        """UnsupportedLoopError where the body gives keys other values: then they are not those of the element. And for
        `tokens[d][w]`, which is known by now as `tokens[d, w]`, and is in Python a part of a list."""
        changed = assigned_names(loop.body)
        for part in filter(self.is_own, every(Subscript, *loop.body)):
            source, span = self.function.source, part.span
            if keys := [key for key in self.space.keys if key in changed]:
                what = f"`{keys[0]}`, a key of `{self.space.array}`, is given another value in the loop"
                why = f"`{print_expr(part)}` is then another element than that of the iteration"
                raise unsupported(what, span, source, why=why, hint="use another name for the other value")
            if "][" in source.line(span.line)[span.column : span.end_column].replace(" ", ""):
                what, why = "a part of a row of a sparse array", f"a row of `{self.space.array}` is a list of pairs"
                raise unsupported(what, span, source, why=why, hint=f"write `{print_expr(part)}`")

    def is_own(self, expr: object) -> bool:
        """Whether it is the element of the iteration."""
        if not isinstance(expr, Subscript) or expr.base.name != self.space.array:
            return False
        return tuple(part.name if isinstance(part, Var) else "" for part in expr.index) == self.space.keys

    def read(self, expr: Expr) -> Expr:
        if not self.is_own(expr):
            return expr
        items = tuple(Var(name, expr.span) for name in self.names)
        return items[0] if self.kind.single else Tuple(items, expr.span)

    def statement(self, statement: Stmt) -> Iterator[Stmt]:
        """A statement with what it stores in the element of the iteration as scalars."""
        match statement:
            case Assign(target, value, span) if self.is_own(target):
                yield from self.store(self.values(value, span), span)
            case Update(target, op, value, span) if self.is_own(target):
                if not self.kind.single:
                    what = f"`{op}=` of an element whose value is a tuple"
                    raise unsupported(what, span, self.function.source, hint=self.assigned_as_tuple())
                yield from self.store((Binary(op, Var(self.names[0], span), value, span),), span)
            case Assign(Tuple(items), value, span) if any(map(self.is_own, items)):
                names = [Var(fresh(f"value_{span.line}_{k}", self.taken), span) for k in range(len(items))]
                yield Assign(Tuple(tuple(names), span), value, span)
                for item, name in zip(items, names, strict=True):
                    assert isinstance(item, Target)
                    yield from self.statement(Assign(item, name, span))
            case _:
                yield statement

    def values(self, value: Expr, span: Span) -> tuple[Expr, ...]:
        """What is assigned to each of the values of an element."""
        if self.kind.single:
            if isinstance(value, Tuple):
                what = f"a tuple is stored in an element of `{self.space.array}`, which has 1 value"
                raise unsupported(what, span, self.function.source, hint="store one number")
            return (value,)
        if self.is_own(value):
            return tuple(Var(name, span) for name in self.names)
        if not isinstance(value, Tuple) or len(value.items) != len(self.names):
            what = f"an element of `{self.space.array}` has {len(self.names)} values, and is not given as many"
            raise unsupported(what, span, self.function.source, hint=self.assigned_as_tuple())
        return value.items

    def assigned_as_tuple(self) -> str:
        values = ", ".join(f"v{k}" for k in range(len(self.names)))
        return f"write all of them, `{self.space.array}[{', '.join(self.space.keys)}] = {values}`"

    def store(self, values: tuple[Expr, ...], span: Span) -> Iterator[Stmt]:
        """The scalars as these values, in the dtypes of the array, and the element as the scalars."""
        names = tuple(Var(name, span) for name in self.names)
        pairs = zip(self.kind.value_dtypes, values, strict=True)
        made = tuple(Call(f"np.{dtype}", (value,), span) for dtype, value in pairs)
        is_one = len(names) == 1
        yield Assign(names[0], made[0], span) if is_one else Assign(Tuple(names, span), Tuple(made, span), span)
        for number, name in enumerate(names):
            yield Evaluate(Call(STORE, (Const(number, span), name), span), span)


# ---------------------------------------------------------------- all other uses


def stored_arrays(function: Function) -> frozenset[str]:
    """The sparse arrays of which loops of a function store values."""
    loops = (loop for loop in every(For, *function.body) if isinstance(loop.space, Elements))
    return frozenset(loop.space.array for loop in loops if _stores(loop) and isinstance(loop.space, Elements))


def _stores(loop: For) -> bool:
    return any(call.function == STORE for call in every(Call, loop))


def _check(function: Function, sparse: Mapping[str, SparseType]) -> None:
    """UnsupportedLoopError for subscripts of sparse arrays that are left, and for other uses of arrays that are
    stored."""
    targets = {id(one) for node in every((Assign, Update), *function.body) for one in _targets(node)}
    for part in every(Subscript, *function.body):
        if part.base.name in sparse:
            raise _other_subscript(function, part, sparse[part.base.name], is_stored=id(part) in targets)
    stored = stored_arrays(function)
    for call in every(Call, *function.body):
        names = [part.name for part in call.arguments if isinstance(part, Var) and part.name in stored]
        if names and not call.function.startswith("attribute:"):
            what = f"`{names[0]}`, of which a loop here stores values, is given to a function"
            why = "only its elements have values: loops store and read those by their keys, function by function"
            hint = f"write a loop over its elements here, or call the function elsewhere, with `{names[0]}.values`"
            raise unsupported(what, call.span, function.source, why=why, hint=hint)
    for one in function.parts:
        if one.matrix in stored and one.attribute.startswith(("rows", "columns")):
            loop = next(loop for loop in every(For, *function.body) if _stores(loop))
            what = f"`{one.matrix}` is gone through by rows or columns, and another loop here stores its values"
            why = "rows and columns are taken from the array before the function runs, with the values of that time"
            hint = f"put the loops over the rows or columns of `{one.matrix}` in a function of their own"
            raise unsupported(what, loop.span, function.source, why=why, hint=hint)


def _other_subscript(function: Function, part: Subscript, kind: SparseType, *, is_stored: bool) -> Exception:
    array = part.base.name
    keys = _loops_keys(function, array) or tuple("ijklmnop"[axis] for axis in range(kind.ndim))
    text, verb = in_users_words(print_expr(part), function), "stored" if is_stored else "read"
    what = f"`{text}` is {verb}, and `{array}` is a sparse array"
    why = "a loop over a sparse array has the value of the element of its own iteration alone, by the names of its keys"
    hint = f"write `{array}[{', '.join(keys)}]` in a loop `{over_elements(array, kind, keys)}`"
    if len(part.index) == 1 and kind.ndim == 2 and not is_stored:
        hint += f", or go through a row by `for j, value in {array}[i]:`"
    return unsupported(what, part.span, function.source, why=why, hint=hint)


def _loops_keys(function: Function, array: str) -> tuple[str, ...]:
    """What the first loop over an array calls its keys."""
    spaces = (node for statement in function.body for node in walk(statement) if isinstance(node, Elements))
    return next((space.keys for space in spaces if space.array == array), ())
