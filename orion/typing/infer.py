"""What every name of a function is: its dtype, its rank and its lengths, by NumPy's rules (NEP 50).

A name has one type in the whole function: that which holds everything it is assigned. It is found by going through the
statements until nothing changes; types only ever widen, so that this ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from orion.dataclass import dataclass, field
from orion.errors import UnsupportedLoopError
from orion.ir.constants import constant_value
from orion.ir.cures import hold, over_elements
from orion.ir.function import Function, in_users_words
from orion.ir.kept import kept
from orion.ir.nodes import (
    LIST,
    Assign,
    Bind,
    Call,
    Dim,
    Elements,
    Evaluate,
    Expr,
    For,
    If,
    Range,
    Return,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Update,
    Var,
    While,
)  # fmt: skip
from orion.ir.refuse import unsupported
from orion.ir.spans import NOWHERE, without_spans
from orion.ir.types import ArgumentType, ArrayType, ScalarType, SparseType, Types
from orion.ir.unread import left_out, told
from orion.source import Replacement, Span
from orion.typing.expression_types import Typing, UntypedNameError, operation_type
from orion.typing.problems import TypeProblem
from orion.typing.rewritten import product_in_place
from orion.typing.rewritten_names import items_of, other_name, stored_one_by_one
from orion.typing.single import NO_USES, Uses, uses_of
from orion.typing.taken_apart import one_by_one
from orion.typing.value_type import (
    INT,
    NONE,
    Limits,
    ValueType,
    as_row,
    dtype_limits,
    fits_single,
    join,
    join_limits,
    literal_limits,
    not_single,
)  # fmt: skip

__all__ = ["Typing", "ValueType", "infer_types"]


def with_local_arrays(types: Types, function: Function) -> dict[str, ArgumentType]:
    """The types of all parameters: those of the arguments, and of the arrays that the function makes."""
    return {**types, **{one.name: ArrayType(one.dtype, len(one.lengths)) for one in function.local_arrays}}


def infer_types(function: Function, types: Types) -> Typing:
    """The types of all names of the function, for arguments of these types.

    Raises `UnsupportedLoopError`, with the place, where an expression has no type (ranks that do not fit, a name that
    is not assigned before, a name that is a scalar in one place and a row in another).
    """
    return _inferred(function, tuple(types.items()))


@kept
def _inferred(function: Function, types: tuple[tuple[str, ArgumentType], ...]) -> Typing:
    known = dict(types)
    given = {name: argument_value(name, known[name]) for name in function.params}
    try:
        return _Inference(function, function.helpers, known, given).run()
    except UnsupportedLoopError as error:
        error.args = (in_users_words(str(error), function),)
        raise


def argument_value(name: str, kind: ArgumentType) -> ValueType:
    """The type of an argument as a value: an array has the lengths `Dim(name, axis)`."""
    match kind:
        case ScalarType(dtype, weak):
            return ValueType(dtype, weak)
        case ArrayType(dtype, ndim):
            return ValueType(dtype, False, ndim, tuple(Dim(name, axis, NOWHERE) for axis in range(ndim)))
        case SparseType(ndim, _, value_dtypes):
            return ValueType(value_dtypes[0], False, ndim, tuple(Dim(name, axis, NOWHERE) for axis in range(ndim)))


def _helper_type(helpers: tuple[Function, ...], name: str, arguments: tuple[ValueType, ...]) -> ValueType:
    """The type of what a helper function returns when called with arguments of these types."""
    helper = next(helper for helper in helpers if helper.name == name)
    inference = _Inference(helper, helpers, {}, dict(zip(helper.params, arguments, strict=True)), is_helper=True)
    inference.run()
    return inference.returned or NONE


@dataclass(slots=True)
class _Inference:
    function: Function
    helpers: tuple[Function, ...]
    arguments: Types
    names: dict[str, ValueType]
    is_helper: bool = False
    returned: ValueType | None = None
    untyped: Stmt | None = None
    widened: bool = False
    """Whether a type, or the limits of a name, have changed in this pass: what was read before may have others."""
    truths: dict[str, bool] = field(default_factory=dict)
    limits: dict[str, Limits | None] = field(default_factory=dict)
    """Of the Python integers that a name is given; None, or no entry, where they are not known."""
    wide: set[str] = field(default_factory=set)
    """The names that are given Python numbers which may not fit single precision."""
    kept: set[str] = field(default_factory=set)
    """Those of them that are given such numbers in loops."""
    uses: Uses = NO_USES
    lists: dict[str, Expr] = field(default_factory=dict)
    """The lengths of lists to whose items loops give values (`orion.passes.lists` makes arrays of them)."""
    current: Typing | None = None
    """What is known by now, until a name gets another type: new names are added to it."""
    fit: set[str] = field(default_factory=set)
    """The names in it whose Python numbers all fit single precision."""
    items: dict[str, dict[Span, ValueType]] = field(default_factory=dict)
    """The types of their items, by the places where they are given."""

    def run(self) -> Typing:
        before: object = None
        self.uses = uses_of(self.function)
        self.wide.update(name for name in self.function.params if name in self.names and self.names[name].weak)
        while before != (self.names, self.limits, self.truths):
            before = dict(self.names), dict(self.limits), dict(self.truths)
            self.untyped, self.widened = None, False
            self.block(self.function.body)
            if not self.widened and self.untyped is None:
                break
        if self.untyped is not None:
            raise self.unassigned(self.untyped)
        return self.typing

    @property
    def typing(self) -> Typing:
        if self.current is None:
            helper_type, source = partial(_helper_type, self.helpers), self.function.source
            self.fit = set(self.single)
            self.current = Typing(self.arguments, self.names, source, helper_type, self.truths, self.fit)
        return self.current

    @property
    def single(self) -> frozenset[str]:
        """The names whose Python numbers all fit single precision, as far as is known by now."""
        return frozenset(self.names.keys() - {name for name in self.wide if self.is_wide(name)})

    # ------------------------------------------------------------ statements

    def block(self, body: Iterable[Stmt]) -> None:
        for statement in body:
            try:
                self.statement(statement)
            except UntypedNameError:
                self.untyped = statement
            for inner in (getattr(statement, "body", ()), getattr(statement, "orelse", ())):
                self.block(inner)

    def statement(self, statement: Stmt) -> None:
        match statement:
            case Assign(Var(name), Call(function, (length,))) if function == LIST:
                self.lists[name] = without_spans(length)  # its type is that of its items
            case Assign(Subscript(Var(name)), value) if name in self.lists:
                self.item(name, self.typing.of(value), statement)
            case Assign(target, value):
                self.assign(target, self.typing.of(value), statement, value)
            case Bind(name, row):
                self.assign(Var(name, statement.span), self.typing.of(row), statement)
            case Update():
                self.update(statement)
            case Evaluate(value):
                self.typing.of(value)
            case If(test) | While(test):
                self.typing.condition(test)
            case For(space):
                self.loop(space, statement)
            case Return(value):
                self.result(value, statement)
            case _:
                pass

    def assign(
        self, target: Var | Subscript | Tuple, kind: ValueType, statement: Stmt, value: Expr | None = None
    ) -> None:
        match target:
            case Var(name):
                self.bind(name, kind, statement, value)
            case Subscript():
                self.store(target, kind, statement)
            case Tuple(items) if kind.rank == 1 and isinstance(value, Var | Subscript):
                for item in items:
                    assert isinstance(item, Var | Subscript)
                    self.assign(item, ValueType(kind.dtype), statement)
            case Tuple(items):
                if not kind.items:
                    what = f"a {_shape_word(kind)} is not taken apart into {len(items)} names"
                    hint = one_by_one(target, value, self.typing, self.function.body)
                    raise self.refuse(statement, what, hint=hint)
                if len(items) != len(kind.items):
                    what = f"{len(kind.items)} values cannot be unpacked into {len(items)} targets"
                    raise self.refuse(statement, what)
                values = value.items if isinstance(value, Tuple) else (None,) * len(items)
                for item, part, own in zip(items, kind.items, values, strict=True):
                    assert isinstance(item, Var | Subscript)
                    self.assign(item, part, statement, own)

    def bind(self, name: str, kind: ValueType, statement: Stmt, value: Expr | None = None) -> None:
        if isinstance(self.arguments.get(name), ArrayType | SparseType):
            why = "the name stands for the array in the whole function"
            is_swap = isinstance(statement, Assign) and isinstance(statement.value, Tuple)
            hint = "to swap two sparse arrays, write the loops once for each" if is_swap else "use another name"
            raise self.refuse(statement, f"the array `{name}` is assigned by its plain name", why, hint)
        if kind.dtype == "none":
            hint, source = "use a number, such as -1 or np.nan", self.function.source
            unread = None if value is None else left_out(value.span, source)
            hint = hint if unread is None else told(unread, hint, source)
            raise self.refuse(statement, f"`{name}` is given None", hint=hint, replacement=unread)
        if kind.dtype == "tuple":
            named = items_of(statement, name, kind, self.function.source)
            what, hint = "a tuple is used as a value", "write its items one by one"
            raise self.refuse(statement, what, hint=hint, replacement=named)
        old = self.names.get(name)
        truth = self.truth_of(kind, value)
        if truth is not None and not (self.truths.get(name) or self.truths.get(name) is truth):
            self.truths[name] = truth
            self.current = self.current if old is None else None
            self.widened |= old is not None
        self.note_wide(name, kind, statement, value)
        joined = self.joined(name, old, kind, value)
        if joined is None:
            what = f"`{name}` is a {_shape_word(old)} in one place and a {_shape_word(kind)} here"
            why, other = "a name has one type in a compiled loop", other_name(statement, name, self.function.source)
            raise self.refuse(statement, what, why, "use two names", replacement=other)
        if joined != old:
            self.names[name] = joined
            self.widened |= old is not None
            self.current = self.current if old is None else None
            self.fit |= set() if self.is_wide(name) else {name}

    def truth_of(self, kind: ValueType, value: Expr | None) -> bool | None:
        """As `Typing.truth`, of a value that a name is given."""
        if value is not None:
            return self.typing.truth(value)
        return not kind.weak if kind.dtype == "bool" and not kind.rank else None

    def joined(self, name: str, old: ValueType | None, kind: ValueType, value: Expr | None) -> ValueType | None:
        """The type of a name that was of type `old` and is now given a value of type `kind`."""
        if kind == INT:
            limits = self.limits_of(value)
            known = name in self.limits or old is not None
            self.limit(name, join_limits(self.limits.get(name), limits) if known else limits)
        found = kind if old is None else join(old, kind, self.limits.get(name))
        if found is not None and self.is_wide(name):
            found = not_single(found)
        if found == INT and kind != INT and kind.is_integer:
            self.limit(name, join_limits(self.limits.get(name), dtype_limits(kind.dtype)))
        return found

    def note_wide(self, name: str, kind: ValueType, statement: Stmt, value: Expr | None) -> None:
        """Note that a name is given a Python number which may not fit single precision."""
        if kind.weak and not kind.rank and not fits_single(value, self.single):
            self.widened |= name in self.names and name not in self.wide
            self.wide.add(name)
            if statement.span in self.uses.in_loops:
                self.kept.add(name)
            if name in self.names:
                self.current = None

    def is_wide(self, name: str) -> bool:
        """Whether a name keeps such numbers where they are seen: not where it adds to them or multiplies them, which
        makes them NumPy's, nor where loops choose a value for it that they only compare, which leave what it was."""
        is_kept = name in self.kept or name not in self.uses.chosen
        return name in self.wide and is_kept and name not in self.uses.updated

    def limit(self, name: str, limits: Limits | None) -> None:
        self.widened |= name in self.limits and self.limits[name] != limits
        self.limits[name] = limits

    def limits_of(self, value: Expr | None) -> Limits | None:
        """The limits of a Python integer: a constant, or a name that is only given constants."""
        if isinstance(value, Var):
            return self.limits.get(value.name)
        return None if value is None else literal_limits(value)

    def store(self, target: Subscript, kind: ValueType, statement: Stmt) -> None:
        """`a[…] = value`: the value must fit into what is written."""
        place = self.typing.of(target)
        self.check_place(target, statement)
        is_row = place.rank == 1 and not any(part.rank or part.items for part in kind.items)
        if (kind.items and not is_row) or kind.dtype == "none":
            raise self.refuse(statement, "an array element is given something that is not a number")
        if kind.rank > place.rank:
            what = f"a {_shape_word(kind)} is assigned to a {_shape_word(place)}"
            raise self.refuse(statement, what, hint="assign element by element")
        self.check_complex(place, kind, statement)
        self.check_number(place.dtype, statement)
        self.check_writeable(target.base.name, statement)

    def item(self, name: str, kind: ValueType, statement: Stmt) -> None:
        """`a[…] = value`, where that is the item of a list."""
        if kind.dtype == "none" or any(part.rank or part.items or part.dtype == "none" for part in kind.items):
            what, hint = "the items of this list are no numbers or arrays", "write rows of an array, `a[i] = …`"
            raise unsupported(what, statement.span, self.function.source, hint=hint, is_for_numba=True)
        items = self.items.setdefault(name, {})
        items[statement.span] = as_row(kind)
        first = next(iter(items.values()))  # that all are of its type is seen to by `orion.passes.lists`
        lengths = (self.lists[name], *first.lengths)
        old, found = self.names.get(name), ValueType(first.dtype, False, len(lengths), lengths)
        self.names[name], self.current = found, None
        self.widened |= old is not None and old != found

    def check_complex(self, place: ValueType, kind: ValueType, statement: Stmt) -> None:
        """Refuse to store a complex number where only its real part would be kept."""
        if any(one.is_complex for one in (kind, *kind.items)) and not place.is_complex:
            why = "only its real part would be kept; NumPy raises an error, or warns"
            hint = "write `z.real`, or make the array complex: `np.zeros(n, dtype=np.complex128)`"
            raise self.refuse(statement, f"a complex number is stored as {place.dtype}", why, hint)

    def check_number(self, dtype: str, statement: Stmt) -> None:
        """Refuse to store a number that integers of a dtype do not have."""
        number = constant_value(statement.value) if isinstance(statement, Assign) else None
        if number is None or not np.issubdtype(dtype, np.integer):
            return
        limits = np.iinfo(dtype)
        if not limits.min <= number <= limits.max:
            hint = "use a number that fits, or convert the array: `x.astype(np.int64)`"
            raise self.refuse(statement, f"{number} does not fit {dtype}", "NumPy raises an OverflowError", hint)

    def check_place(self, target: Subscript, statement: Stmt) -> None:
        """Refuse to write where an array, or a mask, says."""
        for part in target.index:
            if not isinstance(part, Slice) and self.typing.of(part).rank:
                is_mask = self.typing.of(part).dtype == "bool"
                what = "a mask as a subscript" if is_mask else "an array of subscripts"
                hint = "write a loop with an `if`, or `np.where`" if is_mask else "write a loop over the subscripts"
                if isinstance(statement, Update) and not is_mask:
                    hint += "; it changes an element as often as its subscript is there, NumPy once"
                loop = None
                if isinstance(statement, Assign | Update) and self.is_one_by_one(statement, part):
                    loop = stored_one_by_one(statement, part, self.function.source, is_mask=is_mask)
                what = f"{what} that is written to is not supported"
                raise self.refuse(statement, what, "", hint, replacement=loop)

    def is_one_by_one(self, statement: Assign | Update, part: Expr) -> bool:
        """Whether a row of subscripts says where a number is stored."""
        value = self.typing.of(statement.value)
        return self.typing.of(part).rank == 1 and not (value.rank or value.items)

    def update(self, statement: Update) -> None:
        if isinstance(statement.target, Subscript):
            self.check_place(statement.target, statement)
        target, value = self.typing.of(statement.target), self.typing.of(statement.value)
        written = statement.target, statement.value
        try:
            result = operation_type(statement.op, target, value, written) if statement.op != "@" else None
        except TypeProblem as problem:
            raise self.refuse(statement, problem.what, problem.why, problem.hint) from problem
        if result is None or result.rank > target.rank > 0:
            words = f"`{statement.op}=` writes a {_shape_word(value if result is None else result)}"
            why = "an operator in place keeps the shape of what it updates"
            hint = "write `a[:] = a @ …` for `a @= …`" if statement.op == "@" else "update it element by element"
            what, text = f"{words} to a {_shape_word(target)}", product_in_place(statement)
            raise self.refuse(statement, what, why, hint, replaced_by=text)
        if isinstance(statement.target, Subscript) or target.rank:
            name = statement.target.base.name if isinstance(statement.target, Subscript) else statement.target.name
            if target.rank < result.rank:
                what = f"a {_shape_word(result)} is assigned to a {_shape_word(target)}"
                raise self.refuse(statement, what, hint="assign element by element")
            if target.rank and not np.can_cast(result.dtype, target.dtype, "same_kind"):
                why = f"NumPy does not convert the {result.dtype} of the operation to {target.dtype} in place"
                hint = f"write `a[:] = a {statement.op} …` for `a {statement.op}= …`: an assignment converts"
                raise self.refuse(statement, f"`{statement.op}=` of rows of other dtypes", why, hint)
            self.check_complex(target, result, statement)
            self.check_writeable(name, statement)
        else:
            self.bind(statement.target.name, result, statement)

    def check_writeable(self, name: str, statement: Stmt) -> None:
        kind = self.arguments.get(name)
        if isinstance(kind, ArrayType) and not kind.writeable:
            hint = f"{hold(name, f'{name}.copy()')}; or `{name}.setflags(write=True)` where it owns its data"
            error = self.refuse(statement, f"`{name}` is written, and is a read-only array", "", hint)
            error.read_only = name
            raise error
        if isinstance(kind, SparseType):
            why = "a loop over a sparse array stores values one by one, by the names of the keys"
            keys = ", ".join("ijklmnop"[: kind.ndim])
            hint = f"write `{name}[{keys}] = …` in a loop `{over_elements(name, kind)}`, or write a dense array"
            raise self.refuse(statement, f"the sparse array `{name}` is written", why, hint)

    def loop(self, space: Range | Elements, statement: Stmt) -> None:
        if isinstance(space, Range):
            for bound in (space.start, space.stop, space.step):
                self.typing.require_integer(bound, "a bound of a range")
            self.bind(space.var, INT, statement)
            return
        kind = self.arguments.get(space.array)
        if not isinstance(kind, SparseType):
            raise self.not_sparse(space, statement)
        if len(space.keys) != kind.ndim or space.single != kind.single or len(space.values) != len(kind.value_dtypes):
            raise self.other_elements(space, kind, statement)
        for key in space.keys:
            self.bind(key, INT, statement)
        for value, dtype in zip(space.values, kind.value_dtypes, strict=True):
            self.bind(value, ValueType(dtype), statement)

    def result(self, value: Expr | None, statement: Stmt) -> None:
        kind = NONE if value is None else self.typing.of(value)
        if not self.is_helper:  # what the user's function returns is Python's
            return
        joined = self.joined("return", self.returned, kind, value)
        if joined is None:
            raise self.refuse(statement, "the function returns values of different shapes")
        self.returned = joined

    # ------------------------------------------------------------ refusals

    def refuse(
        self,
        statement: Stmt,
        what: str,
        why: str = "",
        hint: str = "",
        *,
        replaced_by: str | None = None,
        replacement: Replacement | None = None,
    ) -> UnsupportedLoopError:
        found = replacement if replaced_by is None else Replacement(statement.span, replaced_by)
        return unsupported(what, statement.span, self.function.source, why=why, hint=hint, replacement=found)

    def refuse_expr(self, expr: Expr, what: str, why: str = "", hint: str = "") -> Exception:
        return unsupported(what, expr.span, self.function.source, why=why, hint=hint)

    def unassigned(self, statement: Stmt) -> Exception:
        try:
            self.statement(statement)
        except UntypedNameError as error:
            hint = "give it a value before the loop, or before its first use"
            what, source = f"`{error}` is used before it is assigned", self.function.source
            return unsupported(what, statement.span, source, hint=hint, is_for_numba=bool(self.lists))
        return self.refuse(statement, "a name is used before it is assigned")

    def not_sparse(self, space: Elements, statement: Stmt) -> Exception:
        what = f"`{space.array}` is not a sparse array"
        why = "`for (i, j), value in …` goes over the stored elements of a sparse array"
        hint = f"write `for i in range(len({space.array})):`, or make it with orion.sparse"
        if space.array in self.names and not self.names[space.array].rank:
            hint = "make it with orion.sparse"
        return self.refuse(statement, what, why, hint)

    def other_elements(self, space: Elements, kind: SparseType, statement: Stmt) -> Exception:
        what = f"an element of `{space.array}` has {kind.ndim} keys and {len(kind.value_dtypes)} values"
        return self.refuse(statement, what, "", f"write `{over_elements(space.array, kind)}`")


def _shape_word(kind: ValueType | None) -> str:
    rank = 0 if kind is None else kind.rank
    return ("scalar", "row", "matrix")[rank] if rank < 3 else f"{rank}-dimensional array"
