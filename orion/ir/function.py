"""A decorated function, or a helper, in the loop language, with what passes have found of it."""

from __future__ import annotations

import re
from typing import Any

from orion.arrays.sending import Sending
from orion.dataclass import dataclass
from orion.ir.assumed import Assumed
from orion.ir.kept import Keeping, kept
from orion.ir.nodes import Elements, Expr, Range, Stmt
from orion.ir.replicas import Replica, ReplicaPart
from orion.source import SourceText, Span


@dataclass(frozen=True, slots=True)
class Induction:
    """An integer that grew by `step` in every trip of `for` number `loop`, and has been replaced by its value in terms
    of the loop's variable (`orion.passes.induction`). `span` is the last place that increased it."""

    name: str
    step: Expr
    loop: int
    span: Span


@dataclass(frozen=True, slots=True)
class SourceFor:
    """A `for` of the source: its header, the numbers of the loops that it became, outermost first, and how many `for`s
    of the source stand around it."""

    span: Span
    loops: tuple[int, ...]
    depth: int

    @property
    def line(self) -> int:
        return self.span.line


@dataclass(frozen=True, slots=True)
class Bar:
    """A progress bar around what the `for` in a line goes through: `make` makes it, with these options. `trips` says
    how many iterations that has, where it is an expression of arguments; `is_whole`: none of them ends the loop."""

    line: int
    make: Any
    options: tuple[tuple[str, object], ...]
    trips: Range | Elements | None = None
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class Rows:
    """An array of one dimension whose subscripts have been taken apart: it holds rows of `widths[-1]` elements, rows of
    `widths[-2]` such rows, and so on (`orion.passes.delinearize`). `span` is the first subscript with a product,
    `written` and `shown` that subscript as it was and as it is."""

    array: str
    widths: tuple[Expr, ...]
    span: Span
    written: str
    shown: str


@dataclass(frozen=True, slots=True)
class MatrixPart:
    """A parameter that is an array or a number of a sparse matrix among the arguments: `A_indptr` is `A.indptr`
    (`orion.frontend.matrices`). Attributes that begin with `rows` or `columns` are of a sparse array by these."""

    name: str
    matrix: str
    attribute: str

    @property
    def written(self) -> str:
        """What it is called where it is told of."""
        name, _, axis = self.attribute.partition("_")
        return f"{self.matrix}.{name}[{axis}]" if name == "shape" else f"{self.matrix}.{self.attribute}"


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """A parameter that is a sparse array of `dims` dimensions among the arguments with other keys: those of a
    dimension, or what another argument has for them (`orion.frontend.mapped_keys`). The keys of the dimensions `kept`
    are values. `words` are the names of keys in loops, with what they stand for."""

    name: str
    array: str
    dims: int
    terms: tuple[tuple[int, str], ...]
    kept: tuple[int, ...]
    words: tuple[tuple[str, str], ...]

    @property
    def maps(self) -> tuple[str, ...]:
        """The arguments that are maps of keys."""
        return tuple(dict.fromkeys(name for _, name in self.terms if name))


@dataclass(frozen=True, slots=True)
class Unpacked:
    """An assignment that gives the elements of a row, which has this length, to so many targets; or `is_written`, so
    many values to the elements of a row (`orion.passes.unpacking`)."""

    length: Expr
    count: int
    span: Span
    is_written: bool


@dataclass(frozen=True, slots=True)
class Stands:
    """A name of the source that stands for an array of another name in `for` number `loop`
    (`orion.passes.array_names`)."""

    loop: int
    name: str
    array: str


@dataclass(frozen=True, slots=True)
class Turn:
    """A scalar that is the number of the state in which an iteration begins: which arrays these names of the source
    stand for (`orion.passes.array_states`)."""

    name: str
    names: tuple[str, ...]

    @property
    def words(self) -> str:
        """What it is called where it is told of."""
        what, verb = ("array", "stands") if len(self.names) == 1 else ("arrays", "stand")
        return f"which {what} {' and '.join(self.names)} {verb} for"


@dataclass(frozen=True, slots=True)
class HelperLocal:
    """A name that stands for a local of a helper put in place of its call, where the function has another of that name
    (`orion.passes.inline`); or, where `helper` is empty, for a parameter that the function gives another value
    (`orion.passes.given_anew`), or a loop variable that is read after its loop (`orion.passes.after_loops`)."""

    name: str
    helper: str
    local: str


@dataclass(frozen=True, slots=True)
class InBlocks:
    """Scalars that iterations hand on, or arrays whose elements they do, in `for` number `loop`, which goes through
    blocks of `length` iterations (`orion.rewrites.scans`). `is_rounded`: sums of floats are rounded in
    blocks; `is_twice`: what blocks do with them is computed in loops before it."""

    loop: int
    names: tuple[str, ...]
    length: int
    is_rounded: bool
    is_twice: bool


@dataclass(frozen=True, slots=True)
class ByKey:
    """A scalar that is a value of the element of an iteration, which the source finds in `array` by the names of its
    keys (`orion.passes.element_stores`): `written` is what it is there."""

    name: str
    array: str
    written: str


@dataclass(frozen=True, slots=True)
class BufferPart:
    """A parameter that a call takes from `buffer` among its arguments: its array, where `number` is 0, or helper
    `number - 1`. `is_array`: it is an array itself, whose updates may be late."""

    name: str
    buffer: str
    number: int
    is_array: bool

    @property
    def written(self) -> str:
        """What it is called where it is told of."""
        own = "array" if not self.number else f"helpers[{self.number - 1}]"
        return self.buffer if self.is_array else f"{self.buffer}.{own}"


@dataclass(frozen=True, slots=True)
class Buffered:
    """A parameter that collects the updates of another one, `array`, which are applied later (`orion.buffer`).

    `name` is an array of each worker's own, of the same shape; where the source has no name for it, `source` is what
    stands there. `helpers` are further parameters, and `snapshots` those of each worker's own that keep what helper
    number `snapshot_of[k]` was when its element was first used. `apply` is the helper function that gives the new
    value of an element, None for the sum; `results` says how many of (array, *helpers) it gives new values of.
    `max_delay` is how many iterations updates may be late, and `sending` how they go to other nodes. `span` is the
    first place that updates it, or reads the array.
    """

    name: str
    array: str
    source: str
    helpers: tuple[str, ...]
    snapshots: tuple[str, ...]
    snapshot_of: tuple[int, ...]
    apply: str | None
    results: int
    max_delay: int
    deterministic: bool
    sending: Sending
    span: Span

    @property
    def names(self) -> tuple[str, ...]:
        """All that the updates have to do with."""
        return (self.name, self.array, *self.helpers, *self.snapshots)

    @property
    def own(self) -> tuple[str, ...]:
        """The arrays of each worker's own."""
        return (self.name, *self.snapshots)

    @property
    def changed(self) -> tuple[str, ...]:
        """The arrays that applying updates gives new elements."""
        return (self.array, *self.helpers)[: self.results]


@dataclass(frozen=True, slots=True)
class Accumulated:
    """A parameter that iterations add to by a function of the user's (`orion.accumulator`): `source` in the source, its
    numbers are the parameters `names`, of these `dtypes`. `combine` is the helper function of two times as many
    arguments, which is called `written` in the source; `init` has the numbers that change nothing. `is_tuple`: its
    value is a tuple of the numbers; `is_commutative`: they may be combined in another order than that of iterations.
    `span` is the first place that adds to it."""

    source: str
    names: tuple[str, ...]
    combine: str
    init: tuple[Any, ...]
    dtypes: tuple[str, ...]
    is_tuple: bool
    is_commutative: bool
    written: str
    span: Span

    @property
    def op(self) -> str:
        """The operator that its numbers are combined by, as reductions have it."""
        return f"helper:{self.combine}"


@dataclass(frozen=True, slots=True)
class LocalArray:
    """An array that the function makes between its loops (`orion.passes.local_arrays`).

    `lengths` are expressions of extents and integers that the caller gives. `is_sure`: it is made whenever the function
    is called; `is_zero`: its memory is zero then, which is all that makes it. `span` is the first place that makes it.
    `alike` are pairs of lengths that must be equal, because arrays of these lengths meet in what it is made of, and
    `one_shape` those that are, as long as every place that makes it gives it the same shape. `is_list`: it is as long
    as a list may get.
    """

    name: str
    dtype: str
    lengths: tuple[Expr, ...]
    is_returned: bool
    is_sure: bool
    span: Span
    is_zero: bool = False
    alike: tuple[tuple[Expr, Expr], ...] = ()
    one_shape: tuple[tuple[Expr, Expr], ...] = ()
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Function(Keeping):
    """A decorated function, or a helper that it calls.

    `constants` are the scalars it takes from its closure or its globals, frozen when it is parsed: where they are used,
    the body has their values. `helpers` are all of the user's functions that it calls, directly or through one another,
    in the same language, callees first; the helpers of a helper are listed here and not there. `inductions` are those
    that have been replaced, `rows` the arrays that are given as arrays of more dimensions. `local_arrays` are the last
    of the parameters: arrays that the caller does not give. `deciding` are scalars that may not be combined from
    iterations that run at the same time, since what is evaluated depends on them, each with what may then go wrong
    (`orion.dependence.guarded`);
    `running` those that loops keep extremes of in ways for which NaN matters (`orion.passes.extremes`). `assumed` is
    what holds of the sizes and integers of the calls that it is for, `words` the arguments of these that are strings or
    None, which are no parameters (`orion.passes.options`). `unpacked` are the rows that are taken apart,
    `sure` arrays that are made before they are read even where that cannot be seen (`orion.passes.array_names`).
    `stands` says of loops which arrays names of the source are there, `turns` which scalars are numbers of such states,
    `helper_locals` which names are those of helpers. `outside` are parameters too: arrays that it has
    from its globals or its closure. `without` are the rewrites that are left out (`orion.pipeline`), `bars` the
    progress bars of its loops (`orion.frontend.bars`). `reassociates`: scalars that iterations add to may be rounded in
    blocks of iterations where these hand them on; `in_blocks` are loops that do so. `lists` are the arrays
    that are lists in the source (`orion.frontend.lists`), `plain_lists` those of Python's numbers, not NumPy's,
    `counters` the scalars that count the items of lists, with these (`orion.frontend.counted_lists`). `parts` are
    parameters that a call takes from sparse matrices among its arguments, `rekeyed` those that are sparse arrays among
    them with other keys, `by_key` values of elements of sparse arrays, `buffered` those whose updates may be late,
    `replicas` those of which each worker has a copy, `buffer_parts` what is taken from buffers and replicas,
    `accumulated` those that are the numbers of accumulators. `fors` are the loops of the source, in textual order, also
    those that passes have removed.
    """

    name: str
    params: tuple[str, ...]
    body: tuple[Stmt, ...]
    constants: tuple[tuple[str, int | float | bool], ...]
    helpers: tuple[Function, ...]
    source: SourceText
    span: Span
    inductions: tuple[Induction, ...] = ()
    rows: tuple[Rows, ...] = ()
    local_arrays: tuple[LocalArray, ...] = ()
    deciding: tuple[tuple[str, str], ...] = ()
    running: frozenset[str] = frozenset()
    assumed: tuple[Assumed, ...] = ()
    words: tuple[tuple[str, str | None], ...] = ()
    unpacked: tuple[Unpacked, ...] = ()
    sure: frozenset[str] = frozenset()
    stands: tuple[Stands, ...] = ()
    turns: tuple[Turn, ...] = ()
    outside: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()
    bars: tuple[Bar, ...] = ()
    helper_locals: tuple[HelperLocal, ...] = ()
    reassociates: bool = True
    in_blocks: tuple[InBlocks, ...] = ()
    lists: tuple[str, ...] = ()
    plain_lists: frozenset[str] = frozenset()
    counters: tuple[tuple[str, str], ...] = ()
    parts: tuple[MatrixPart, ...] = ()
    rekeyed: tuple[Rekeyed, ...] = ()
    by_key: tuple[ByKey, ...] = ()
    buffered: tuple[Buffered, ...] = ()
    replicas: tuple[Replica, ...] = ()
    buffer_parts: tuple[BufferPart | ReplicaPart, ...] = ()
    accumulated: tuple[Accumulated, ...] = ()
    fors: tuple[SourceFor, ...] = ()

    @property
    def late(self) -> tuple[Buffered | Replica, ...]:
        """The buffers and the replicas."""
        return (*self.buffered, *self.replicas)

    @property
    def relaxed(self) -> frozenset[str]:
        """The arrays of which no access is ordered: buffers, their arrays and helpers, and copies of workers. Arrays
        that these are copies of are not touched by the loops that have the copies, but by pulls."""
        buffers = (name for one in self.buffered for name in one.names)
        return frozenset((*buffers, *(one.name for one in self.replicas)))

    @property
    def in_turn(self) -> frozenset[str]:
        """The names of the scalars that may not be combined from iterations that run at the same time."""
        return frozenset(name for name, _ in self.deciding)

    @property
    def shown(self) -> tuple[str, ...]:
        """The parameters that the caller gives as the source has them: matrices, buffers and replicas, not what is
        taken from them."""
        matrices = {part.name: part.matrix for part in self.parts} | {one.name: one.array for one in self.rekeyed}
        matrices |= {part.name: part.buffer for part in self.buffer_parts}
        return tuple(dict.fromkeys(matrices.get(name, name) for name in self.given))

    @property
    def given(self) -> tuple[str, ...]:
        """The parameters that the caller gives."""
        return self.params[: len(self.params) - len(self.local_arrays)]


@kept
def written_names(function: Function) -> frozenset[str]:
    """Return the names in the source of a function and of those put in place of their calls, and the names that have
    words there (`in_users_words`)."""
    sources = [function.source]
    for source in sources:
        sources += source.others
    words = (word for source in sources for line in source.lines for word in re.findall(r"\w+", line))
    return frozenset({*words, *_words(function)})


def _words(function: Function) -> dict[str, str]:
    """Return the names that have other words in the source, with these."""
    said = {part.name: part.written for part in function.parts}
    for array in function.rekeyed:
        said |= {array.name: array.array, **dict(array.words)}
    said |= {value.name: value.written for value in function.by_key} | {one.name: one.words for one in function.turns}
    said |= {part.name: part.written for part in function.buffer_parts if part.name != part.buffer}
    for sums in function.accumulated:
        said |= {name: f"{sums.source}[{k}]" for k, name in enumerate(sums.names) if sums.is_tuple}
    for one in function.helper_locals:
        words = f"{one.helper}.{one.local}" if one.helper else one.local
        said[one.name] = words + "'" * sum(words == other.rstrip("'") for other in said.values())
    return said


def in_users_words(text: str, function: Function) -> str:
    """What is said of a function, with `helper.name` for names that stand for locals of its helpers: the user has
    written `name` there. Those of a second call of the helper are `helper.name'`. What is taken from sparse matrices is
    said as it is written, `A.indptr`, and so are values of elements, `tokens[d, w]`."""
    said = _words(function)
    if not said:
        return text
    names = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(said, key=len, reverse=True)))})\b")
    cells = re.split("( {2,})", text)  # those of a table stay below each other
    for at, cell in enumerate(cells[::2]):
        cells[2 * at] = names.sub(lambda found: said[found[0]], cell)
        if 2 * at + 1 < len(cells):
            cells[2 * at + 1] = " " * max(2, len(cells[2 * at + 1]) + len(cell) - len(cells[2 * at]))
    return "".join(cells)
