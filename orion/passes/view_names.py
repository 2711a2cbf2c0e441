"""Which names of a function stand for parts of arrays, and what is known about names that their subscripts use."""

from __future__ import annotations

from collections.abc import Iterator

from orion.dataclass import dataclass
from orion.ir.function import Function
from orion.ir.nodes import (
    Assign,
    Call,
    Choose,
    Const,
    Elements,
    Expr,
    For,
    If,
    Node,
    Range,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Update,
    Var,
    every,
    names_in,
    walk,
)  # fmt: skip
from orion.ir.rewriting import expand
from orion.ir.types import ArrayType
from orion.passes.writes import returns_views, viewed_places
from orion.typing.expression_types import Typing
from orion.typing.functions import may_be_view, writes


def is_view(value: Expr, typing: Typing) -> bool:
    """Whether an assigned value is a part of an array, or another name for one, rather than a new value."""
    match value:
        case Var():
            return typing.of(value).rank > 0
        case Subscript(_, index):
            fancy = any(not isinstance(part, Slice) and typing.of(part).rank for part in index)
            return typing.of(value).rank > 0 and not fancy
        case _:
            return False


def view_assignments(function: Function, typing: Typing) -> dict[str, set[str]]:
    """The names that are assigned views, each with the names of what they are views of."""
    found: dict[str, set[str]] = {}
    for node in every(Assign, *function.body):
        if isinstance(node.target, Var) and is_view(node.value, typing):
            base = node.value.base if isinstance(node.value, Subscript) else node.value
            assert isinstance(base, Var)
            found.setdefault(node.target.name, set()).add(base.name)
    return found


def _nodes(function: Function) -> Iterator[Node]:
    for statement in function.body:
        yield from walk(statement)


def written_names(function: Function, typing: Typing) -> frozenset[str]:
    """The names whose elements the function may write: those it assigns by subscript, updates, or hands to a function,
    and what they are views of."""
    found: set[str] = set()
    for node in every((Assign, Update, Call), *function.body):
        match node:
            case Assign(Subscript(Var(name))) | Update(Subscript(Var(name))) | Update(Var(name)):
                found.add(name)
            case Assign(Tuple(items)):
                found |= {item.base.name for item in items if isinstance(item, Subscript)}
            case Call(called, arguments) if called.startswith("helper:") or writes(called):
                found |= names_in(*arguments)
            case _:
                pass
    views = view_assignments(function, typing)
    for _ in views:  # a view of a view of … has at most as many steps as there are names
        found |= {base for name in found & views.keys() for base in views[name]}
    return frozenset(found)


def never_negative(function: Function) -> frozenset[str]:
    """Loop variables that are never negative: keys, and those of ranges that start at a constant and go up."""
    good: set[str] = set()
    bad: set[str] = set(function.params)
    for node in every((For, Assign, Update), *function.body):
        match node:
            case For(Range(var, Const(int(start)), _, Const(int(step)))) if start >= 0 and step > 0:
                good.add(var)
            case For(Elements(_, keys, values)):
                good |= {*keys}
                bad |= {*values}
            case For(Range(name)) | Assign(Var(name)) | Update(Var(name)):
                bad.add(name)
            case Assign(Tuple(items)):
                bad |= {item.name for item in items if isinstance(item, Var)}
            case _:
                pass
    return frozenset(good - bad)


# ---------------------------------------------------------------- assignments of several views, or of one of several


def plain_assignments(function: Function, typing: Typing) -> tuple[Stmt, ...]:
    """The statements, with every assignment of views made into assignments of one view to one name.

    `a, b = W[i], H[j]` becomes two assignments, `w = W[i] if c else H[j]` an `if` with one in each branch.
    """
    plain = _Plain(function, typing, frozenset(view_assignments(function, typing)))
    return expand(function.body, plain.statement)


@dataclass(frozen=True, slots=True)
class _Plain:
    """`views` are the names that are assigned views."""

    function: Function
    typing: Typing
    views: frozenset[str]

    def statement(self, statement: Stmt) -> tuple[Stmt, ...]:
        typing = self.typing
        match statement:
            case Assign(Var() as target, Choose(test, then, orelse)) if typing.of(then).rank > 0:
                body, other = (self.statement(Assign(target, value, statement.span)) for value in (then, orelse))
                return (If(test, body, other, statement.span),)
            case Assign(Var() as target, Call(name, (owner, *_)) as call) if (
                may_be_view(name) and typing.of(owner).rank
            ):
                if name == "np.expand_dims" and self.stays(target.name, owner):
                    return (statement,)
                row = self.viewed_row(call, owner)
                return (statement,) if row is None else self.statement(Assign(target, row, statement.span))
            case Assign(target, Call(name) as call) if name.startswith("helper:") and self.has_rows(call):
                helper = name.removeprefix("helper:")
                if not isinstance(target, Subscript) and returns_views(self.function, helper):
                    what = f"`{helper}` returns a part of one of its arguments"
                    why = "a name for the result would be another name for a part of an array"
                    hint = "return a copy of it, `return w.copy()`"
                    raise typing.refuse(call, what, why, hint, is_for_numba=True)
                return (statement,)
            case _:
                return (statement,)

    def stays(self, name: str, owner: Expr) -> bool:
        """Whether nothing writes to an array, nor to a part of it that has this name: a copy is then the same."""
        return written_names(self.function, self.typing).isdisjoint({name, *names_in(owner)})

    def has_rows(self, call: Call) -> bool:
        kind = self.typing.of(call)
        return any(part.rank for part in (kind, *kind.items))

    def viewed_row(self, call: Call, owner: Expr) -> Expr | None:
        """What a transposed, flattened or reversed row is, as a subscript or a name; None where it is a new array."""
        rank = self.typing.of(owner).rank
        if call.function in (".conj", ".conjugate"):  # of complex numbers (`orion.passes.attributes`)
            return None
        if rank == 1 and (call.function == "np.diag" or not tuple(viewed_places(owner))):
            return None
        if rank == 1 and call.function in ("attribute:T", "np.transpose"):
            return owner
        if rank == 1 and call.function in (".ravel", "np.ravel") and self.is_contiguous(owner):
            return owner
        if rank == 1 and call.function == "np.flip" and isinstance(owner, Var):
            step = Unary("-", Const(1, call.span), call.span)
            return Subscript(owner, (Slice(None, None, step, call.span),), call.span)
        hint = "write subscripts of the array itself, `W[i, j]` for `W.T[j, i]`, or make a copy, `W.T.copy()`"
        forms = {"np.flip": "a reversed array", "np.diag": "a diagonal"}
        forms |= dict.fromkeys((".reshape", "np.reshape"), "an array in another shape")
        forms["np.expand_dims"] = "an array with a new axis"
        forms |= {"attribute:real": "the real parts of an array", "attribute:imag": "the imaginary parts of an array"}
        what = f"a name for {forms.get(call.function, 'a transposed or flattened array')} is not supported"
        if call.function in ("attribute:real", "attribute:imag"):
            hint = "write the part of each element, `z[i].real`, or make a copy, `z.real.copy()`"
        if call.function == "np.diag":
            hint = "write its elements, `A[i, i]`"
        if call.function == "np.expand_dims":
            hint = "write it where it is used, or make a copy, `x[:, None].copy()`"
        if call.function in (".ravel", "np.ravel"):
            hint = (
                "write subscripts of the array itself, `A[k // m, k % m]`, or make a copy, `A.reshape(A.size).copy()`"
            )
        if call.function in (".reshape", "np.reshape"):
            hint = "make a copy, `A.reshape(n, m).copy()`, or pass the array in that shape"
        if rank == 1 and call.function in (".ravel", "np.ravel"):
            what = "whether this is a copy depends on how the array lies in memory"
            hint = "write `.copy()` for a copy, or leave `ravel` out: a row is flat"
        why = "it may be another name for a part of an array"
        raise self.typing.refuse(call, what, why, hint, is_for_numba=True)

    def is_contiguous(self, row: Expr) -> bool:
        """Whether the elements of a row lie one after another for sure, so that `ravel` makes no copy."""
        match row:
            case Var(name):
                kind = self.typing.arguments.get(name)
                return kind.c_contiguous if isinstance(kind, ArrayType) else name not in self.views
            case Subscript(Var(name), index):
                kind = self.typing.arguments.get(name)
                last = index[-1]
                whole = isinstance(last, Slice) and last.lower is last.upper is last.step is None
                scalars = index[:-1] if whole else index
                is_row = not any(isinstance(part, Slice) or self.typing.of(part).rank for part in scalars)
                return isinstance(kind, ArrayType) and kind.c_contiguous and is_row
            case _:
                return False
