"""Reads that may see a copy of their array made before the loop.

Let r: (x, v) → e be a read of an array A in an ordered nest of ranges, and w: (y, u) → e its writes in the nest, with x
and y the iterations, v and u the coordinates of the loops inside them, and ≺ the written order of all instances.

    r may see a copy of A made before the nest   iff   ∄ w, (y, u) ≺ (x, v):  w(y, u) ∩ r(x, v) ≠ ∅

that is, iff no flow dependence reaches r from inside the nest, be it carried by one of its loops or inside an
iteration. All that r reads then has the value from before the nest. The anti dependences from r to the writes of A are
gone with it, for no write reaches the copy. This is the array renaming, or node splitting, of Kuck et al. 1981,
*Dependence graphs and compiler optimizations*, and Allen and Kennedy 2002, *Optimizing Compilers for Modern
Architectures*, section 5.5; writes that may not happen count like others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.dependence.access import Dependence
from orion.dependence.conflicts import CapReached, capped
from orion.dependence.model import own_space
from orion.dependence.references import Reference, collect_references
from orion.ir.nodes import Assign, Bind, For, Range, Slice, Subscript, While, every, names_in, walk
from orion.ir.program import LoopNest, OfNewOrder
from orion.ir.types import Types
from orion.rewrites.privatize.find import Placed, place_reference
from orion.sets.affine import Affine
from orion.sets.maps import Maps

if TYPE_CHECKING:
    import islpy as isl


def renamable_reads(
    nest: LoopNest, types: Types, dependences: Iterable[Dependence]
) -> dict[str, tuple[Subscript, ...]]:
    """By array, the reads with anti dependences between iterations that may see a copy made before the nest."""
    sources = {(d.array, d.source.span) for d in dependences if d.kind == "anti"}
    references = collect_references(nest, types)
    wanted = [r for r in references if not r.is_write and (r.array, r.span) in sources]
    moved = {*_moved_by_steps(nest)}
    wanted = [r for r in wanted if r.subscript not in moved]
    found: dict[str, tuple[Subscript, ...]] = {}
    for array in dict.fromkeys(reference.array for reference in wanted):
        reads = dict.fromkeys(r.subscript for r in wanted if r.array == array and r.subscript is not None)
        judge = _judge(nest, types, array, references)
        good = tuple(read for read in reads if judge is not None and judge.may_see_copy((read,)))
        if good:
            found[array] = good
    return found


def _moved_by_steps(nest: LoopNest) -> Iterator[Subscript]:
    """Parts of arrays that are assigned to other parts of these with a step, as they are: NumPy does `a[:10:2] = a[:5]`
    one element after the other, so that later ones see what has been written."""
    for statement in every(Assign, *nest.body):
        match statement:
            case Assign(Subscript(base) as target, Subscript(other) as value) if base.name == other.name:
                if any(part.step is not None for part in every(Slice, target, value)):
                    yield value


def may_see_copy(nest: LoopNest, types: Types, array: str, reads: Sequence[Subscript]) -> bool:
    """Whether some reads of an array, given as they stand in the nest, may all see a copy of it made before."""
    if not {*reads}.isdisjoint(_moved_by_steps(nest)):
        return False
    judge = _judge(nest, types, array, collect_references(nest, types))
    return judge is not None and judge.may_see_copy(reads)


@dataclass(frozen=True, slots=True)
class _Judge:
    """The accesses to one array in a nest of `dims` dimensions, with their relations."""

    dims: int
    maps: Maps
    placed: tuple[Placed, ...]

    def may_see_copy(self, reads: Sequence[Subscript]) -> bool:

        readers = [one for one in self.placed if one.reference.subscript in reads]
        if not readers or any(one.reference.is_write or one.reference.blur for one in readers):
            return False  # what is updated in place must see what was written
        pairs = [(read, write) for read in readers for write in self.placed if write.reference.is_write]
        texts = [_earlier(write.reference, read.reference, self.dims) for read, write in pairs]
        orders = [self.maps.map(text) for text in texts]
        try:
            with capped(self.maps.context):
                return not any(
                    _reaches(write.relation, read.relation, order)
                    for (read, write), order in zip(pairs, orders, strict=True)
                )
        except CapReached:
            return False


def _judge(nest: LoopNest, types: Types, array: str, references: Iterable[Reference]) -> _Judge | None:
    """Who decides on the reads of an array; None where nothing is known of the nest."""
    import islpy as isl

    space = own_space(nest, types)
    is_fit = nest.elements is None and not isinstance(nest.form, OfNewOrder) and nest.ordered and not space.reasons
    if not is_fit or _is_unordered(nest, array):
        return None
    maps = Maps()
    everything = isl.Set("{ : }", maps.context)
    own = (reference for reference in references if reference.array == array)
    return _Judge(len(space.dims), maps, tuple(place_reference(one, space, everything, maps) for one in own))


def _is_unordered(nest: LoopNest, array: str) -> bool:
    """Whether the array may be touched in a loop of the nest whose trips have no coordinates."""
    nodes = [node for statement in nest.body for node in walk(statement)]
    names = {array, *(node.name for node in nodes if isinstance(node, Bind))}
    return any(
        isinstance(node, While | For) and not isinstance(getattr(node, "space", None), Range) and names & names_in(node)
        for node in nodes
    )


def _reaches(write: isl.Map, read: isl.Map, earlier: isl.Map) -> bool:
    """Whether what a write leaves at an instance is read at a later one."""
    return not read.apply_range(write.reverse()).intersect(earlier).is_empty()


def _earlier(write: Reference, read: Reference, dims: int) -> str:
    """The isl map (x, v) → (y, u) from instances of a read to those of a write that come before."""
    x, y = [f"x{d}" for d in range(dims)], [f"y{d}" for d in range(dims)]
    inputs = [*x, *(f"v{level}" for level in range(len(read.inner)))]
    outputs = [*y, *(f"u{level}" for level in range(len(write.inner)))]
    before = [" and ".join([*(f"{x[k]} = {y[k]}" for k in range(d)), f"{y[d]} < {x[d]}"]) for d in range(dims)]
    same = " and ".join([*(f"{one} = {other}" for one, other in zip(x, y, strict=True)), _first(write, read, 0)])
    conditions = " or ".join(f"({text})" for text in (*before, same))
    return f"{{ [{', '.join(inputs)}] -> [{', '.join(outputs)}] : {conditions} }}"


def _first(write: Reference, read: Reference, level: int) -> str:
    """That the write comes first, given that the two are in the same trips of the loops further out than `level`."""
    here, there = write.place[level], read.place[level]
    if here != there:
        return "true" if here < there else "false"
    if level >= min(len(write.inner), len(read.inner)):
        return "true"  # at one place: not known
    step = write.inner[level].step  # both are in this loop
    if not isinstance(step, Affine) or not step.value:
        return "true"
    sign = "<" if step.value > 0 else ">"
    return f"(u{level} {sign} v{level} or (u{level} = v{level} and {_first(write, read, level + 1)}))"
