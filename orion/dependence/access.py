"""Accesses to arrays and the dependences between them: the values that the analysis hands on."""

from __future__ import annotations

from orion.dataclass import dataclass, replace
from orion.passes.extremes import AGAINST, comparison
from orion.reasons import Hint, Reason
from orion.source import Span

"""The codes of subscripts that are not understood."""


@dataclass(frozen=True, slots=True)
class ByReads:
    """Access as a function of values read from integer arrays that nothing writes.

    - `relation`: the isl map of the access, as text. Its inputs are the `dims` coordinates of the iteration, the
      variables of inner loops, and the values of all reads.
    - `reads`: per read, its array and the map from the same inputs to (its place, its value).
    """

    dims: int
    relation: str
    reads: tuple[tuple[str, str], ...]


NO_READS = ByReads(0, "", ())


@dataclass(frozen=True, slots=True)
class Access:
    """Read or write of an array in the body of a loop.

    - `array`, `text`, `span`: the array, and the access as written, with its place.
    - `is_write`: a write, not a read.
    - `is_may`: it stands under a condition on data, so that it may not happen.
    - `relation`: the isl map from the iteration to the elements that it accesses, as text. The loop dimensions name an
      iteration. Over a sparse array, an `n` follows, which separates elements with equal keys.
    - `exact`: False for an over-approximation; `reason` then says why.
    - `by_reads`: the access as a function of values that its subscripts, and enclosing bounds, read from arrays.
    """

    array: str
    text: str
    is_write: bool
    is_may: bool
    relation: str
    exact: bool
    reason: Reason | None
    span: Span
    by_reads: ByReads = NO_READS

    def __repr__(self) -> str:
        return f"<Access: {self.text} {'written' if self.is_write else 'read'} in line {self.span.line}>"


@dataclass(frozen=True, slots=True)
class Dependence:
    """Pair of accesses by which different iterations conflict.

    - `array`, `source`, `sink`: the array and the two accesses.
    - `kind`: "flow" (write, then read), "anti" (read, then write) or "output" (write, then write). In an unordered loop
      it is "conflict", since neither comes first.
    - `relation`: the isl map from the source iteration to the sink iteration, as text.
    - `distance`: per loop dimension, the difference of the two iterations; None where pairs differ.
    - `direction`: per loop dimension, its sign: "<" (sink later), "=", ">", "<=", ">=", or "*".
    - `exact`: False for an over-approximation; `reason` then says why.
    """

    array: str
    kind: str
    source: Access
    sink: Access
    relation: str
    distance: tuple[int | None, ...]
    direction: tuple[str, ...]
    exact: bool
    cap: Reason | None = None

    def __repr__(self) -> str:
        first, second = self.source, self.sink
        apart = ", ".join("*" if step is None else str(step) for step in self.distance)
        places = f"{first.text} (line {first.span.line}) to {second.text} (line {second.span.line})"
        return f"<Dependence: {self.kind} over {self.array}, {places}, distance ({apart})>"

    @property
    def reason(self) -> Reason | None:
        """Reason for an over-approximation, or None. `cap`: the analysis reached its cost limit."""
        found = self.cap or self.source.reason or self.sink.reason
        blurred = [access for access in (self.source, self.sink) if access.reason is not None]
        if found is None or self.cap or any(access.is_write for access in blurred) or not found.row.about_subscript:
            return found
        return replace(found, hint=Hint.OLD_VALUES.format(array=self.array))  # what is written is known exactly


@dataclass(frozen=True, slots=True)
class Reduction:
    """Scalar that every iteration updates with one operator, and that nothing else in the loop reads.

    `op` is "+", "*", "min", "max", "and" or "or"; `-=` is a "+" reduction of negated values. It is "helper:name" for
    the numbers of an accumulator: the user's function combines them together, in order.
    """

    name: str
    op: str
    span: Span


@dataclass(frozen=True, slots=True)
class Choice:
    """Scalars that the loop takes from one iteration: that with the best value, the last, or the first that ends the
    loop.

    `names` are set together. With `op` "<", "<=", ">" or ">=", an iteration sets them if the first compares so with its
    present value. Operators of `orion.passes.extremes` differ from these for NaN alone. With "last", every iteration
    sets them; with "first", only the one that ends the loop.
    """

    names: tuple[str, ...]
    op: str
    span: Span

    @property
    def comparison(self) -> str | None:
        """Comparison of values other than NaN; None for "last" and "first"."""
        return None if self.op in ("last", "first") else comparison(self.op)

    @property
    def begins_anew(self) -> bool:
        """True if a NaN among the values makes it start again."""
        return self.op.startswith(AGAINST)


@dataclass(frozen=True, slots=True)
class ScalarRoles:
    """Roles of the scalars in the loop body.

    - `private`: written before they are read in each iteration.
    - `inputs`: only read.
    - `reductions`, `choices`: combined from all iterations, or taken from one.
    - `carried`: passed from one iteration to the next, or out of the last one, each with the place that shows it.
    """

    private: tuple[str, ...]
    inputs: tuple[str, ...]
    reductions: tuple[Reduction, ...]
    carried: tuple[tuple[str, Span], ...]
    choices: tuple[Choice, ...] = ()

    @property
    def accumulations(self) -> tuple[Reduction, ...]:
        """Numbers of accumulators, combined in the order of the iterations."""
        return tuple(one for one in self.reductions if one.op.startswith("helper:"))

    @property
    def has_results(self) -> bool:
        """Whether the loop gives scalars new values."""
        return bool(self.reductions or self.choices or self.carried)


@dataclass(frozen=True, slots=True)
class PrivateArray:
    """Array that every iteration may have for itself (`orion.rewrites.privatize.find`).

    `dependences` are those over it, which then do not count. `span` is the first place that writes it.
    """

    name: str
    span: Span
    dependences: tuple[Dependence, ...]


@dataclass(frozen=True, slots=True)
class ElementSum:
    """Array whose elements all iterations update with one operator, and that nothing else in the loop accesses.

    `op` is "+", "*", "min" or "max"; `span` is the first update. `dependences` are those over the array. They do not
    count where copies of it are updated and combined (`orion.rewrites.array_sums.find`).
    """

    name: str
    op: str
    span: Span
    dependences: tuple[Dependence, ...]


@dataclass(frozen=True, slots=True)
class LoopDependences:
    """Result of the dependence analysis of one loop.

    - `domain`: the isl set of its iterations.
    - `reasons`: those that are not about a pair of accesses.
    - `private`: arrays that each tile has for itself.
    - `sums`: arrays that the loop updates in copies.
    - `dependences`: without those over `private` and `sums`.
    """

    domain: str
    accesses: tuple[Access, ...]
    dependences: tuple[Dependence, ...]
    scalars: ScalarRoles
    reasons: tuple[Reason, ...]
    private: tuple[PrivateArray, ...] = ()
    sums: tuple[ElementSum, ...] = ()

    def __repr__(self) -> str:
        return f"<LoopDependences: {len(self.accesses)} accesses, {len(self.dependences)} dependences>"
