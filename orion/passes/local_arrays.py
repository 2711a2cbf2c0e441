"""Arrays that a function makes between its loops, as parameters that the caller does not give.

    n = A.shape[0]                        n = A.shape[0]
    B = A.copy()                          for B_0 in range(A.shape[0]):
    for i in range(1, n):                     B[B_0] = A[B_0]
        B[i] = A[i - 1]                   for i in range(1, n):
    return B                                  B[i] = A[i - 1]
                                          return B

Every later stage finds an array whose memory is there when the function begins: it is analysed, placed, shared out and
proved like any other. That needs one dtype and one shape, known when the call begins, for all places that make it.
Where an array is made again (in every round of a serial loop, say), its one piece of memory is filled again: no name
may then stand for a part of what it was before, which is what a `Bind` that is left would do. An array of zeros that is
made once and returned has memory that is new, and zero, in each call: nothing needs to fill it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from orion.dataclass import dataclass, field, replace
from orion.errors import UnsupportedLoopError
from orion.ir.assigned import assigned_by, assigned_names, assignments
from orion.ir.exposed import exposed_reads
from orion.ir.function import Function, LocalArray
from orion.ir.nodes import (
    INTEGER,
    RETURNED,
    Assign,
    Binary,
    Bind,
    Call,
    Compare,
    Const,
    Count,
    Dim,
    Expr,
    For,
    If,
    Node,
    Pass,
    Range,
    Return,
    Slice,
    Stmt,
    Subscript,
    Tuple,
    Unary,
    Update,
    Var,
    While,
    holds,
    names_in,
    walk,
)  # fmt: skip
from orion.ir.printer import print_expr
from orion.ir.program import new_fillings
from orion.ir.refuse import as_said, unsupported
from orion.ir.renaming import fresh
from orion.ir.rewriting import expand, rewrite, rewrite_function, with_new
from orion.ir.spans import with_span, without_spans
from orion.passes.elementwise import NamedScalars, element_of
from orion.passes.part_lengths import Lengths, leaf_lengths
from orion.source import Span
from orion.typing.expression_types import Typing
from orion.typing.functions import Form, form_of, is_elementwise
from orion.typing.value_type import ONE, ValueType

SHAPED = ("np.zeros", "np.ones", "np.empty", "np.full", "np.arange")
"""Functions that are given lengths: a negative one is refused, also for np.arange, of which len would be negative."""

BEFORE = "make it before the call, and pass it as an argument"


def make_arrays(function: Function, typing: Typing, names: Collection[str]) -> Function:
    """The function with the local arrays `names` among its parameters, and loops that fill them in place of the
    statements that make them.

    Raises `UnsupportedLoopError` where their sizes are not known when a call begins, or one piece of memory could not
    stand for all that a name stands for.
    """
    maker = _Maker(function, typing, definitions(function), {*typing.names})
    made = sorted((maker.made(name) for name in names), key=lambda one: one.span)
    lengths = {one.name: one.lengths for one in made}
    zero = frozenset(one.name for one in made if one.is_zero)
    filler = _Filler(typing, maker, lengths, zero, new_fillings(function.body))
    body = expand(_one_by_one(function.body, names), filler.statement)
    pairs = {name: (*maker.alike.get(name, ()), *filler.alike.get(name, ())) for name in lengths}
    made = [replace(one, alike=tuple(dict.fromkeys(pairs[one.name]))) for one in made]
    changed = replace(
        function, params=(*function.params, *lengths), body=body, local_arrays=(*function.local_arrays, *made)
    )
    return rewrite_function(changed, filler.extents)


def named_results(function: Function, typing: Typing) -> Function:
    """The function with a name for every new array that it returns: `return A.copy()` gives `made = A.copy()` first."""
    taken = {*typing.names}

    def named(statement: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(statement, Return) or statement.value is None:
            return (statement,)
        before: list[Stmt] = []
        kept: list[Expr] = []
        for part in statement.value.items if isinstance(statement.value, Tuple) else (statement.value,):
            if isinstance(part, Var | Subscript) or not typing.of(part).rank or is_part_returned(part, typing):
                kept.append(part)
                continue
            name = Var(fresh("made", taken), part.span)
            before.append(Assign(name, part, part.span))
            kept.append(name)
        value = Tuple(tuple(kept), statement.value.span) if isinstance(statement.value, Tuple) else kept[0]
        return (*before, replace(statement, value=value)) if before else (statement,)

    return with_new(function, body=expand(function.body, named))


def is_part_returned(part: Expr, typing: Typing) -> bool:
    """Whether what is returned is a part of a part of an array, or a copy of a part of a size that only the loops tell:
    it is made when they are done."""
    match part:
        case Call(".copy", (Subscript() | Call() as inner,)) if None in typing.of(part).lengths:
            index = inner.index if isinstance(inner, Subscript) else ()
            is_plain = not any(typing.of(one).rank for one in index if not isinstance(one, Slice))
            return is_plain and (isinstance(inner, Subscript) or is_part_returned(inner, typing))
        case Call(function):
            return function == RETURNED
        case _:
            return False


def definitions(function: Function) -> dict[str, Expr]:
    """The values of the names that are assigned once in the function, at its top level, and are no parameters."""
    counts = Counter(name for statement in function.body for name, _ in assignments(statement))
    found: dict[str, Expr] = {}
    for target, value in (pair for statement in function.body for pair in _pairs(statement)):
        if isinstance(target, Var) and counts[target.name] == 1 and target.name not in function.params:
            found[target.name] = value
    return found


def _pairs(statement: Stmt) -> Iterator[tuple[Expr, Expr]]:
    """The targets of an assignment with what each is given, as far as that is written there."""
    match statement:
        case Assign(Tuple(targets), Tuple(values)):
            yield from zip(targets, values, strict=False)
        case Assign(target, value):
            yield target, value


def _one_by_one(body: tuple[Stmt, ...], names: Collection[str]) -> tuple[Stmt, ...]:
    """The statements, with an assignment to several names apart where one of those is an array to be made and no value
    mentions a name that is assigned."""

    def apart(statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Tuple(targets) as left, Tuple(values) as right, span) if names_in(left) & {*names}:
                pairs = zip(targets, values, strict=False)
                are_names = len(targets) == len(values) and all(isinstance(target, Var) for target in targets)
                if are_names and names_in(left).isdisjoint(names_in(right)):
                    return tuple(Assign(target, value, span) for target, value in pairs)  # type: ignore[arg-type]
        return (statement,)

    return expand(body, apart)


@dataclass(slots=True)
class _Maker:
    """Finds out what is to be known of an array that is made. `values` are `definitions`, `taken` all names in use,
    `alike` pairs of lengths that must be equal, by array."""

    function: Function
    typing: Typing
    values: Mapping[str, Expr]
    taken: set[str]
    alike: dict[str, list[tuple[Expr, Expr]]] = field(default_factory=dict)

    def made(self, name: str) -> LocalArray:
        """The array `name`; UnsupportedLoopError where it cannot be made before the loops run."""
        nodes = [node for statement in self.function.body for node in walk(statement)]
        makers = [(value, node) for node in nodes if isinstance(node, Assign) for value in _given(node, name)]
        if not makers:
            raise self.refuse(name, nodes[0], "it is not given a new array as a whole")
        first, span = makers[0][1], makers[0][1].span
        if len(makers) < sum(name in assigned_by(node) and not isinstance(node, Update) for node in nodes):
            raise self.refuse(name, first, f"`{name}` also stands for something that is no new array")
        is_bound = any(isinstance(node, Bind) and name in (node.name, node.row.base.name) for node in nodes)
        is_made_once = len(makers) == 1 and any(one is first for one in self.function.body)
        if is_bound and not is_made_once:
            raise self.refuse(name, first, f"another name stands for a part of `{name}` that it may no longer have")
        if name not in self.function.sure and name in (
            unsure := exposed_reads(self.function.body, {*self.typing.names} - {name})
        ):
            raise self.unsure(name, unsure[name])
        found = [self.lengths(name, value, node) for value, node in makers]
        if not any(found):
            raise self.refuse(name, first, f"how large `{name}` is must follow from the arguments")
        lengths, *others = dict.fromkeys(filter(None, found))
        dtypes = {self.typing.of(value).dtype for value, _ in makers}
        if len(dtypes) > 1:
            what = f"it is made with different dtypes, {' and '.join(sorted(dtypes))}"
            raise self.refuse(name, makers[1][1], what, f"use two names, or {BEFORE}")
        one_shape = tuple(pair for other in others for pair in zip(lengths, other, strict=True) if pair[0] != pair[1])
        is_returned = any(isinstance(node, Return) and name in names_in(node) for node in nodes)
        is_zero = is_returned and len(makers) == 1 and first in self.function.body and _is_zeros(makers[0][0])
        is_sure = self.has_shape(name, makers[0][0]) and self.is_sure(first)
        is_list = name in self.function.lists
        return LocalArray(name, dtypes.pop(), lengths, is_returned, is_sure, span, is_zero, (), one_shape, is_list)

    def has_shape(self, name: str, value: Expr) -> bool:
        """Whether a function is given the lengths, which may not be negative then."""
        return isinstance(value, Call) and value.function in SHAPED and name not in self.function.lists

    def is_sure(self, statement: Stmt) -> bool:
        """Whether a statement is run whenever the function is called."""
        for one in self.function.body:
            if one is statement:
                return True
            if holds(Return, one):
                return False
        return False

    def lengths(self, name: str, value: Expr, node: Stmt) -> tuple[Expr, ...]:
        """The lengths of a value that `name` is given, in terms of what the caller gives; none of one that is computed
        of what `name` is already."""
        of_type = self.typing.of(value).lengths
        every = (
            [of_type] if None not in of_type else [*leaf_lengths(value, self.typing, lambda n: self.of_name(n, name))]
        )
        if not every:
            return ()
        every = [tuple(None if length is None else self.resolved(length) for length in one) for one in every]
        found = next((one for one in every if len(one) == len(of_type)), (None,))
        known = tuple(length for length in found if length is not None)
        if len(known) < len(found) or any(None in other for other in every):
            why = f"how large `{name}` is must follow from the arguments: their shapes, and integers among them"
            hint = f"{BEFORE}, as large as it may get"
            if isinstance(value, Call) and names_in(value) <= {*self.function.given}:
                hint = f"pass `{print_expr(value)}`, computed before the call, as an argument"
            raise self.refuse(name, node, why, hint)
        # An operand of fewer axes lies along the last ones, as NumPy broadcasts it.
        pairs = (pair for other in every for pair in zip(known[len(known) - len(other) :], other, strict=True))
        self.alike.setdefault(name, []).extend((one, two) for one, two in pairs if two is not None and one != two)
        return known

    def of_name(self, name: str, made: str) -> Lengths | None:
        """The lengths of what a name stands for; None of that of the array which is made."""
        if name == made:
            return None
        lengths = self.typing.name(name).lengths
        if None not in lengths or name not in self.values or name in names_in(self.values[name]):
            return lengths
        first = next(leaf_lengths(self.values[name], self.typing, lambda n: self.of_name(n, made)), lengths)
        return first if len(first) == len(lengths) else lengths

    def resolved(self, length: Expr, depth: int = 0) -> Expr | None:
        """A length in terms of extents of arguments and integer arguments; None where it is made of anything else."""
        params = {*self.function.params} - assigned_names(self.function.body)
        params -= {name for name, kind in self.typing.names.items() if not kind.rank and kind.dtype.startswith("float")}
        unknown: list[Expr] = []
        made = {one.name: one.lengths for one in self.function.local_arrays}

        def change(part: Expr) -> Expr:
            match part:
                case Var(name) if name not in params and name in self.values and depth < len(self.values):
                    inner = self.resolved(self.values[name], depth + 1)
                    unknown.extend([part] if inner is None else [])
                    return inner or part
                case Dim(array, axis) if array in made:
                    return without_spans(made[array][axis])
                case Dim(array, axis) if array not in self.function.params:
                    inner = (self.of_name(array, "") or ())[axis]
                    found = None if inner is None or inner == part else self.resolved(inner, depth + 1)
                    unknown.extend([part] if found is None else [])
                    return found or part
                case _:
                    unknown.extend([] if _is_size(part, params) else [part])
                    return part

        found = rewrite(without_spans(length), change)
        return None if unknown else found

    def refuse(self, name: str, node: Node, why: str, hint: str = BEFORE) -> UnsupportedLoopError:
        said = as_said(name, node.span, self.function)
        what, why = f"the array `{said}` is made between loops", why.replace(f"`{name}`", f"`{said}`")
        return unsupported(what, node.span, self.function.source, why=why, hint=hint, is_for_numba=True)

    def unsure(self, name: str, span: Span) -> UnsupportedLoopError:
        name = as_said(name, span, self.function)
        what = f"the array `{name}` may be used before it is made"
        why = "a loop or a branch that makes it may not be run"
        return unsupported(what, span, self.function.source, why=why, hint=f"make `{name}` before, with np.zeros or so")


def _given(node: Assign, name: str) -> Iterator[Expr]:
    """The values that an assignment gives to a name as a whole."""
    is_apart = not isinstance(node.target, Tuple) or names_in(node.target).isdisjoint(names_in(node.value))
    yield from (v for t, v in _pairs(node) if is_apart and isinstance(t, Var) and t.name == name)


def _is_zeros(value: Expr) -> bool:
    return isinstance(value, Call) and value.function in ("np.zeros", "np.zeros_like")


def _is_size(part: Expr, params: Collection[str]) -> bool:
    """Whether a part of a length has a value when a call begins, given that what is in it has."""
    match part:
        case Const(int() | float()) | Dim() | Count():
            return True
        case Var(name):
            return name in params
        case Unary("-" | "+") | Binary("+" | "-" | "*" | "//" | "%" | "/"):
            return True
        case Call(function, arguments):
            is_known = function in ("min", "max", "int", "abs", INTEGER) or form_of(function) is Form.MATH
            return is_known and bool(arguments)
        case _:
            return False


# ---------------------------------------------------------------- what stands for the statements that make arrays


@dataclass(slots=True)
class _Filler:
    """`lengths` are those of the arrays that are made, and `zero` those whose memory is zero; `numbers` are those of
    new loops. `alike` are the pairs of lengths that must be equal, by array."""

    typing: Typing
    maker: _Maker
    lengths: Mapping[str, tuple[Expr, ...]]
    zero: frozenset[str]
    numbers: Iterator[int]
    variables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    alike: dict[str, list[tuple[Expr, Expr]]] = field(default_factory=dict)

    def statement(self, statement: Stmt) -> tuple[Stmt, ...]:
        match statement:
            case Assign(Var(name), value) if name in self.lengths:
                return self.filled(name, value, statement.span)
            case If() | For() | While() if not statement.body:
                return (replace(statement, body=(Pass(statement.span),)),)
            case _:
                return (statement,)

    def filled(self, name: str, value: Expr, span: Span) -> tuple[Stmt, ...]:
        """The statements that fill an array with a value."""
        if name in self.zero or (isinstance(value, Call) and value.function in ("np.empty", "np.empty_like")):
            return ()
        lengths, base = self.lengths[name], Var(name, span)
        variables = tuple(Var(one, span) for one in self.variables_of(name))
        scalars = NamedScalars(self.typing, f"{name}_at", self.maker.taken)
        changed = scalars.taken_out(value)
        element = element_of(changed, name, variables, scalars.typing, self.is_known)
        self.note_lengths(name, value)
        if element is None:
            every = Slice(None, None, None, span)
            return (Assign(Subscript(base, (every,) * len(lengths), span), value, span),)
        inner: Stmt = Assign(Subscript(base, variables, span), element, span)
        numbers = sorted(next(self.numbers) for _ in lengths)
        for axis in reversed(range(len(lengths))):
            stop = with_span(lengths[axis], span)
            space = Range(variables[axis].name, Const(0, span), stop, Const(1, span), span)
            inner = For(space, (inner,), numbers[axis], span)
        return (*scalars.before, inner)

    def variables_of(self, name: str) -> tuple[str, ...]:
        """The variables of the loops that fill an array."""
        if name not in self.variables:
            self.variables[name] = tuple(fresh(f"{name}_{k}", self.maker.taken) for k in range(len(self.lengths[name])))
        return self.variables[name]

    def is_known(self, kind: ValueType) -> bool:
        """Whether the lengths of a value are known when a call begins, and none is 1 wherever it is used."""
        return all(length is not None and length != ONE and self.maker.resolved(length) for length in kind.lengths)

    def note_lengths(self, name: str, value: Expr) -> None:
        """Note which lengths must be equal for arrays to meet element by element in a value."""
        for node in walk(value):
            match node:
                case Binary(op, left, right) if op != "@":
                    parts: tuple[Expr, ...] = (left, right)
                case Compare(_, operands):
                    parts = operands
                case Call(function, arguments) if is_elementwise(function) or function in ("np.where", "np.clip"):
                    parts = arguments
                case _:
                    continue
            whole = self.typing.of(node)
            for kind in map(self.typing.of, parts):
                pairs = zip(reversed(whole.lengths), reversed(kind.lengths), strict=False)
                self.alike.setdefault(name, []).extend(self.unequal(pairs))

    def unequal(self, pairs: Iterable[tuple[Expr | None, Expr | None]]) -> Iterator[tuple[Expr, Expr]]:
        """Of pairs of lengths those that are known and not plainly equal."""
        for pair in pairs:
            first, second = (None if one is None or one == ONE else self.maker.resolved(one) for one in pair)
            if first is not None and second is not None and first != second:
                yield first, second

    def extents(self, expr: Expr) -> Expr:
        """An extent of an array that is made as what it is in terms of the arguments."""
        match expr:
            case Dim(array, axis, span) if array in self.lengths:
                return with_span(self.lengths[array][axis], span)
            case _:
                return expr
