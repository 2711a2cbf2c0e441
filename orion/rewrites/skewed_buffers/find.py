"""Which bands can be run in skewed buffers, and what such a buffer looks like.

The last two coordinates of a band in the order of its loops be p and q, those further out t. Where all differences δ of
its dependences are ≥ 0 in every coordinate, those in (t, p, s) with s = p + q are too, and

    δ_t = 0  and  δ ≠ 0   implies   δ_s = δ_p + δ_q > 0.

So boxes of (t, p, s) may be run one after the other (Irigoin and Triolet 1988), and in a box, for one t and one s, all
p at once: lanes of vectors, which a chain along q leaves idle (Lamport 1974, the hyperplane method). Along such a line
an array is gone through in steps of a row less a column. So the elements that a box uses are copied to a buffer, in
which they lie side by side, and back when the box is done.

An access goes from a band's coordinates x to elements M x + c. With e and d the coordinates in a buffer, the element
M_p e + M_q (d − e) + c₀ is at (e, d), c₀ that of one access to the array. This needs two rows of (M_p M_q) with a
determinant of ±1, so that e and d are integer functions of the element, and all accesses to have the same M, with
M_t = M_p α + M_q β and c − c₀ = M_p α' + M_q β' in integers. Then iteration (t, p, s) finds its elements at
e = p + α t + α' and d = s + (α + β) t + α' + β'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from orion.dataclass import dataclass, replace
from orion.dependence.access import Access, Dependence
from orion.dependence.region import Statement
from orion.ir.function import Function
from orion.ir.nodes import Assign, Call, If, Node, Pass, Subscript, Update, Var, names_in, walk
from orion.ir.types import ArrayType, Types
from orion.rewrites.band import Band, Layout, Skew
from orion.rewrites.skewed_buffers.halfspaces import Form, InexactError, combined, inequalities, replaced
from orion.rewrites.tile.sizes import Memory
from orion.sets.coalesced import coalesced
from orion.sets.names import extent_name, isl_name, parameter_list
from orion.source import Span

if TYPE_CHECKING:
    import islpy as isl


LANES = 256
"""Trips of p in a box: many vectors, so that the loads of one step do not wait for the stores of the one before."""

VECTOR = 64
"""Trips of p in a loop of fixed length."""

FEWEST_STEPS, MOST_STEPS = 16, 256
"""Values of p + q in a box: the greatest power of two with which its buffers fit into SHARE of the second-level cache.
More than the most were not measured to be faster."""

SHARE = 0.7
"""The part of the second-level cache that the buffers of a box may take."""

ROUNDS = 16
"""Trips of each loop further out in a box: what copying costs is shared by so many rounds."""

MIN_ROUNDS = 4
"""Copying pays only where a box has this many rounds at least."""

Reach = tuple[tuple[int, int], tuple[int, int]]

LINE = 64
"""Bytes in a cache line."""


def is_skewable(dependences: Sequence[Dependence]) -> bool:
    """Whether no dependence of a band goes backwards in any coordinate: δ ≥ 0."""
    import islpy as isl

    for dependence in dependences:
        deltas = isl.Map(dependence.relation).deltas()
        names = [f"d{k}" for k in range(deltas.dim(isl.dim_type.set))]
        ahead = isl.Set(f"{{ [{', '.join(names)}] : {' and '.join(f'{n} >= 0' for n in names)} }}", deltas.get_ctx())
        if not deltas.is_subset(ahead):
            return False
    return True


def find_skew(
    band: Band,
    statements: Sequence[Statement],
    around: Sequence[str],
    types: Types,
    function: Function,
    memory: Memory,
) -> Skew | None:
    """The buffers for a band, or None where it has no such form. `around` are the variables of the loops around it,
    `statements` those inside."""
    import islpy as isl

    if len(band.loop_order) < 3 or len(statements) > 1 or not _is_plain(statements[0]):
        return None
    if not is_skewable(band.dependences):
        return None
    try:
        layouts = _layouts(band, statements[0], around, types, function)
        domain = inequalities(isl.Set(band.domain), band.dims)
        variables = _variables(band, around)
    except InexactError:
        return None
    if not layouts:
        return None
    lanes, steps = box_of(layouts, memory)
    fitting = tuple(in_box(layout, lanes, steps, memory.itemsize(layout.array)) for layout in layouts)
    return Skew(fitting, frozen(domain), frozen(variables), lanes, steps)


def box_of(layouts: Sequence[Layout], memory: Memory) -> tuple[int, int]:
    """The trips of p and of p + q in a box whose buffers take no more than SHARE of the second-level cache.

    With a megabyte, a five-point stencil of eight-byte elements has boxes of 256 × 256, 650 kB; one that reads another
    array too, 256 × 128.
    """
    sizes = {layout.array: memory.itemsize(layout.array) for layout in layouts}
    lanes, steps = LANES, MOST_STEPS

    def used() -> int:
        return sum(in_box(layout, lanes, steps, sizes[layout.array]).length * sizes[layout.array] for layout in layouts)

    while used() > SHARE * memory.caches.second and steps > FEWEST_STEPS:
        steps //= 2
    while used() > SHARE * memory.caches.second and lanes > VECTOR:
        lanes //= 2
    return lanes, steps


def in_box(layout: Layout, lanes: int, steps: int, itemsize: int) -> Layout:
    """A layout for a box of `lanes` and `steps`; `_layout` makes one for what lies around the iterations alone."""
    extents = layout.extents[0] + lanes, layout.extents[1] + steps
    return replace(layout, extents=extents, stride=_stride(extents[0], itemsize))


def _layouts(
    band: Band, statement: Statement, around: Sequence[str], types: Types, function: Function
) -> tuple[Layout, ...] | None:
    """The buffers of the arrays that need one; None where one cannot be in a buffer."""
    layouts: list[Layout] = []
    for array in dict.fromkeys(access.array for access in statement.accesses):
        accesses = [access for access in statement.accesses if access.array == array]
        kind = types.get(array)
        if not isinstance(kind, ArrayType) or not all(access.exact for access in accesses):
            return None
        if kind.ndim < 2 and not any(access.is_write for access in accesses):
            continue  # read along a line: it needs no buffer
        layout = _layout(array, accesses, statement, band, around, types)
        if layout is None:
            return None
        layouts.append(replace(layout, name=_fresh(f"{array}_skewed", function)))
    return tuple(layouts)


def _fresh(name: str, function: Function) -> str:
    """A name that the function does not use, and none of what is generated for it."""
    taken = names_in(*function.body)
    while name in taken or name in function.params:
        name += "_"
    return name


def _is_plain(statement: Statement) -> bool:
    """Whether the body has only assignments and conditions, and each array is used element by element, at a place in
    the source that no other use has."""
    nodes = [node for part in statement.body for node in walk(part)]
    if not all(isinstance(node, Assign | Update | If | Pass) for part in statement.body for node in _statements(part)):
        return False
    if any(isinstance(node, Call) and node.function.startswith((".", "helper:")) for node in nodes):
        return False
    bases = {node.base.name for node in nodes if isinstance(node, Subscript)}
    uses = sum(isinstance(node, Var) and node.name in bases for node in nodes)
    return uses == sum(isinstance(node, Subscript) for node in nodes)


def _statements(statement: Node) -> Iterator[Node]:
    yield statement
    if isinstance(statement, If):
        for part in (*statement.body, *statement.orelse):
            yield from _statements(part)


# ---------------------------------------------------------------- one array


@dataclass(frozen=True, slots=True)
class _Form:
    """An access as an affine function of the band's coordinates: their coefficients, and the rest."""

    access: Access
    relation: isl.Map
    matrix: NDArray[np.int64]
    rest: tuple[dict[str, int], ...]


def _layout(
    array: str,
    accesses: list[Access],
    statement: Statement,
    band: Band,
    around: Sequence[str],
    types: Types,
) -> Layout | None:
    import islpy as isl

    context, order = isl.Context(), band.loop_order
    place = isl.Map.from_union_map(isl.UnionMap(band.places, context))
    forms = [form for form in (_form(access, place, around) for access in accesses) if form is not None]
    columns = [len(around) + member for member in order]
    if len(forms) < len(accesses) or any((form.matrix != forms[0].matrix).any() for form in forms):
        return None
    basis = forms[0].matrix[:, columns[-2:]]
    slopes = [_in_basis(basis, forms[0].matrix[:, column]) for column in columns[:-2]]
    moves = [_in_basis(basis, constant) for constant in (_difference(form, forms[0]) for form in forms)]
    offsets: dict[Span, tuple[int, int]] = {}
    for form, move in zip(forms, moves, strict=True):
        if move is None or offsets.setdefault(form.access.span, _skewed(move)) != _skewed(move):
            return None
    if any(slope is None for slope in slopes) or unimodular_axes(basis) is None:
        return None
    tilts = tuple(_skewed(slope) for slope in slopes if slope is not None)
    low, high = _reach(tilts, tuple(offsets.values()))
    kind = types[array]
    assert isinstance(kind, ArrayType)
    extents = high[0] - low[0], high[1] - low[1]
    elements, domain = isl.Set(_elements(array, kind.ndim), context), isl.Set(statement.domain, context)
    return Layout(
        array=array,
        steps=(tuple(map(int, basis[:, 0])), tuple(map(int, basis[:, 1]))),
        constants=frozen(forms[0].rest),
        offsets=tuple(offsets.items()),
        writes=tuple(dict.fromkeys(offsets[form.access.span] for form in forms if form.access.is_write)),
        slopes=tilts,
        first=low,
        extents=extents,
        stride=0,
        inside=str(_inside(forms, place, domain, elements)),
    )


def frozen(forms: Iterable[Form]) -> tuple[tuple[tuple[str, int], ...], ...]:
    return tuple(tuple(form.items()) for form in forms)


def unimodular_axes(basis: NDArray[np.int64]) -> tuple[int, int] | None:
    """Two rows of a matrix of two columns with a determinant of ±1."""
    for u, v in combinations(range(len(basis)), 2):
        if abs(basis[u, 0] * basis[v, 1] - basis[u, 1] * basis[v, 0]) == 1:
            return u, v
    return None


def _form(access: Access, place: isl.Map, around: Sequence[str]) -> _Form | None:
    """An access over the coordinates of a band; None where it is not one affine function of them."""
    import islpy as isl

    relation = isl.Map(access.relation, place.get_ctx())
    found = affine_function(place.reverse().apply_range(relation))
    if found is None:
        return None
    hull, rows = found
    names = [f"#{d}" for d in range(hull.dim(isl.dim_type.in_))]
    matrix = np.array([[row.get(name, 0) for name in names] for row in rows], np.int64).reshape(len(rows), len(names))
    rest = [{name: value for name, value in row.items() if name not in names} for row in rows]
    for column, name in enumerate(around):
        rest = [combined((1, form), (int(matrix[axis, column]), {name: 1})) for axis, form in enumerate(rest)]
    return _Form(access, hull, matrix, tuple(rest))


def affine_function(relation: isl.Map) -> tuple[isl.Map, list[dict[str, int]]] | None:
    """A relation as an affine function: its hull, and a form per output over "#0", "#1", … and parameters."""
    import islpy as isl

    hull = isl.Map.from_basic_map(relation.affine_hull())
    if not hull.is_single_valued():
        return None
    pieces: list[isl.MultiAff] = []
    isl.PwMultiAff.from_map(hull).foreach_piece(lambda _domain, piece: pieces.append(piece))
    if len(pieces) != 1:
        return None
    found = []
    for axis in range(hull.dim(isl.dim_type.out)):
        value = pieces[0].get_at(axis)
        if value.get_denominator_val().to_python() != 1 or value.dim(isl.dim_type.div):
            return None
        form = {"": int(value.get_constant_val().to_python())}
        for d in range(value.dim(isl.dim_type.in_)):
            form[f"#{d}"] = int(value.get_coefficient_val(isl.dim_type.in_, d).to_python())
        for d in range(value.dim(isl.dim_type.param)):
            name = value.get_dim_name(isl.dim_type.param, d)
            form[name] = int(value.get_coefficient_val(isl.dim_type.param, d).to_python())
        found.append({name: factor for name, factor in form.items() if factor})
    return hull, found


def _difference(form: _Form, other: _Form) -> NDArray[np.int64] | None:
    """How far apart two accesses are, where that is the same for all values of the parameters."""
    apart = [combined((1, axis), (-1, base)) for axis, base in zip(form.rest, other.rest, strict=True)]
    if any(set(axis) - {""} for axis in apart):
        return None
    return np.array([axis.get("", 0) for axis in apart], np.int64)


def _variables(band: Band, around: Sequence[str]) -> list[dict[str, int]]:
    """The coordinates of a statement in terms of the loops around a band and of its coordinates."""
    import islpy as isl

    found = affine_function(isl.Map.from_union_map(isl.UnionMap(band.places)).reverse())
    if found is None:
        raise InexactError
    names = {f"#{d}": {name: 1} for d, name in enumerate((*around, *band.dims))}
    return [replaced(form, names) for form in found[1]]


def _in_basis(basis: NDArray[np.int64], vector: NDArray[np.int64] | None) -> tuple[int, int] | None:
    """The integers (α, β) with basis · (α, β) = vector, or None where there are none or more than one."""
    if vector is None or np.linalg.matrix_rank(basis) < 2:
        return None
    found = np.round(np.linalg.pinv(basis) @ vector).astype(np.int64)
    return (int(found[0]), int(found[1])) if np.array_equal(basis @ found, vector) else None


def _skewed(move: tuple[int, int]) -> tuple[int, int]:
    """A step in (p, q) as a step in (e, d)."""
    return move[0], move[0] + move[1]


def _reach(slopes: tuple[tuple[int, int], ...], offsets: tuple[tuple[int, int], ...]) -> Reach:
    """How far from its own corner (p, s) a box reads and writes: least and greatest step in e and in d."""
    low, high = [], []
    for axis in (0, 1):
        tilt = [slope[axis] * (ROUNDS - 1) for slope in slopes]
        low.append(min(offset[axis] for offset in offsets) + sum(min(0, t) for t in tilt))
        high.append(max(offset[axis] for offset in offsets) + sum(max(0, t) for t in tilt))
    return (low[0], low[1]), (high[0], high[1])


def _stride(width: int, itemsize: int) -> int:
    """Elements from one line of a buffer to the next: an odd number of cache lines, so that the same places of all
    lines are in different parts of the cache."""
    in_line = LINE // itemsize
    lines = -(-width // in_line)
    return (lines + 1 - lines % 2) * in_line


def _elements(array: str, dims: int) -> str:
    """The isl set of the elements of an array."""
    extents, names = [extent_name(array, axis) for axis in range(dims)], [f"a{axis}" for axis in range(dims)]
    limits = " and ".join(f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True))
    return f"{parameter_list(extents)}{{ {isl_name(array)}[{', '.join(names)}] : {limits} }}"


def _inside(forms: Sequence[_Form], place: isl.Map, domain: isl.Set, elements: isl.Set) -> isl.Set:
    """The parameters for which no instance reaches an element outside of the array."""
    import islpy as isl

    places, found = domain.apply(place), isl.Set("{ : }", domain.get_ctx())
    for form in forms:
        found = found.subtract(places.apply(form.relation).subtract(elements).params())
    return coalesced(found)
