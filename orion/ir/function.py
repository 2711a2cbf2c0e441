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
        """Name in messages."""
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
        """Words for it in messages."""
        what, verb = ("array", "stands") if len(self.names) == 1 else ("arrays", "stand")
        return f"which {what} {' and '.join(self.names)} {verb} for"


@dataclass(frozen=True, slots=True)
class HelperLocal:
    """Name for a variable that had to be renamed, since the function has another of its name.

    It was the local `local` of an inlined `helper` (`orion.passes.inline`). Without a `helper`, it was a parameter that
    the function assigns (`orion.passes.given_anew`), or a loop variable that is read after its loop
    (`orion.passes.after_loops`).
    """

    name: str
    helper: str
    local: str


@dataclass(frozen=True, slots=True)
class InBlocks:
    """Blocks of a scan in `for` number `loop`: its iterations hand on the scalars, or elements of the arrays, `names`
    (`orion.rewrites.scans`).

    Each block has `length` iterations. `is_rounded`: sums of floats are rounded in blocks. `is_twice`: earlier loops
    compute the summaries of blocks.
    """

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
        """Name in messages."""
        own = "array" if not self.number else f"helpers[{self.number - 1}]"
        return self.buffer if self.is_array else f"{self.buffer}.{own}"


@dataclass(frozen=True, slots=True)
class Buffered:
    """Parameter that collects the updates of `array`, which are applied later (`orion.buffer`).

    - `name`: an array of each worker, of the same shape; `source` is what the source has in its place.
    - `helpers`: further parameters of `apply`.
    - `snapshots`: arrays of each worker, with the values that helper `snapshot_of[k]` had at the first use of an
      element.
    - `apply`: the helper function that gives an element its new value, None for the sum. It gives new values to the
      first `results` of (array, *helpers).
    - `max_delay`: the most iterations that an update may be late.
    - `sending`: how updates go to other nodes.
    - `span`: the first place that updates it, or reads the array.
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
        """Arrays that its updates access."""
        return (self.name, self.array, *self.helpers, *self.snapshots)

    @property
    def own(self) -> tuple[str, ...]:
        """Arrays that each worker has for itself."""
        return (self.name, *self.snapshots)

    @property
    def changed(self) -> tuple[str, ...]:
        """Arrays whose elements `apply` gives new values."""
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
    """Array that the function makes between its loops (`orion.passes.local_arrays`).

    - `lengths`: expressions of extents and integers that the caller gives.
    - `is_sure`: every call makes it. `is_zero`: its memory is then zero, and nothing else fills it.
    - `span`: the first place that makes it.
    - `alike`: pairs of lengths that must be equal, because arrays of these lengths meet where it is made.
    - `one_shape`: pairs of lengths that are equal if all places that make it give it the same shape.
    - `is_list`: it is as long as a list may get.
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
    """Decorated function, or a helper that it calls, in the loop language.

    Source:

    - `name`, `params`, `body`, `source`, `span`: as parsed. The last parameters are the `local_arrays`, which the
      caller does not give.
    - `constants`: scalars of its closure or globals, frozen when it is parsed. The body has their values.
    - `outside`: arrays of its closure or globals, as parameters.
    - `helpers`: the user's functions that it calls, directly or through one another, callees first. Helpers list no
      helpers themselves.
    - `fors`: the loops of the source, in textual order, also those that passes have removed.
    - `bars`: progress bars of loops (`orion.frontend.bars`).
    - `assumed`: conditions on the sizes and integers of its calls.
    - `words`: arguments of its calls that are strings or None, which are no parameters (`orion.passes.options`).

    Arguments of other kinds, as parameters:

    - `parts`: arrays and numbers of sparse matrices.
    - `rekeyed`: sparse arrays with other keys.
    - `by_key`: values of elements of sparse arrays.
    - `buffered`: arrays with late updates.
    - `replicas`: arrays of which each worker has a copy.
    - `buffer_parts`: arrays of buffers and replicas.
    - `accumulated`: numbers of accumulators.
    - `lists`: arrays that are lists in the source (`orion.frontend.lists`). `plain_lists` hold Python's numbers, not
      NumPy's.
    - `counters`: scalars that count the items of lists, with these (`orion.frontend.counted_lists`).

    Results of passes:

    - `inductions`: induction variables that have been replaced.
    - `rows`: flat arrays that have become arrays of more dimensions.
    - `deciding`: scalars that control what is evaluated, so that iterations at the same time may not combine them. Each
      has the reason (`orion.dependence.guarded`).
    - `running`: extremes that loops keep in a way for which NaN matters (`orion.passes.extremes`).
    - `unpacked`: rows that an assignment takes apart.
    - `sure`: arrays that are made before they are read, though the analysis cannot see it (`orion.passes.array_names`).
    - `stands`: per loop, the array that a name of the source stands for.
    - `turns`: scalars that number such states.
    - `helper_locals`: names of locals of helpers.
    - `without`: rewrites that are left out (`orion.pipeline`).
    - `reassociates`: True if scans may round their sums in blocks of iterations; `in_blocks` are the loops that do.
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
        """Buffers and replicas."""
        return (*self.buffered, *self.replicas)

    @property
    def relaxed(self) -> frozenset[str]:
        """Arrays whose accesses are not ordered: buffers, with their arrays and helpers, and replicas. The array behind
        a replica is not among them: only pulls access it."""
        buffers = (name for one in self.buffered for name in one.names)
        return frozenset((*buffers, *(one.name for one in self.replicas)))

    @property
    def in_turn(self) -> frozenset[str]:
        """Names of the scalars that iterations at the same time may not combine."""
        return frozenset(name for name, _ in self.deciding)

    @property
    def shown(self) -> tuple[str, ...]:
        """Parameters that the caller gives, as the source has them: matrices, buffers and replicas, not their parts."""
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
    """Return a text about a function with the user's words for internal names.

    A local of a helper becomes `helper.name`, and `helper.name'` in a second call of that helper. Parts of a sparse
    matrix are as written, `A.indptr`, and so are values of elements, `tokens[d, w]`.
    """
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
