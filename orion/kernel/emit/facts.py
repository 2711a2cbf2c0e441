"""What is known about a loop when its kernel is generated."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from orion.arrays.aligned import padded_shape
from orion.dataclass import dataclass, field
from orion.dependence.access import Reduction, ScalarRoles
from orion.dependence.bounds import Place
from orion.ir.assigned import assigned_places
from orion.ir.nodes import Const, Count, Dim, Expr, Node, Slice, Subscript, Var, walk
from orion.ir.program import LoopNest
from orion.ir.types import ArrayType, Shapes, SparseType, Types
from orion.kernel.emit.stop_bounds import Bracket
from orion.plan.plan import Copies
from orion.plan.relaxed import NOT_RELAXED, Relaxed
from orion.typing.expression_types import Typing
from orion.typing.value_type import ValueType

WIDEST = {"f": "float64", "c": "complex128"}
"""Kind of the numbers of a sum or product → the dtype in which a kernel has it; those of integers have 64 bits."""

MAX_REGISTER_ROW = 256
"""The longest row that is kept in registers whole; past it the generated code would be too long for the gain."""


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """A loop, the types and shapes of this call, and the options that its code depends on.

    `cuts` are the numbers of blocks of the loop dimensions. `proved` are the subscripts that lie in `[0, extent)` for
    sure; None stands for those of elements whose indices are all loop dimensions. Of each of `private_arrays` every
    tile but the last has one of its own; in place of the arrays of `copies` a tile has the copy of its block, whose
    number is `block`, an expression in the number of the tile, {tile}. `takes_tiles`: workers
    take tiles of each other; `is_listed`: its coordinates are got from a list. `integers` are the
    least and greatest values of arguments, for estimates. `relaxed` are arrays with buffers; `rests`: tiles may wait
    for others, so that workers that are in none keep nobody waiting for their updates. Of the arrays `looked_through`
    a call knows the least and the greatest element.
    """

    nest: LoopNest
    roles: ScalarRoles
    types: Types
    shapes: Shapes
    typing: Typing
    fastmath: bool
    proved: frozenset[Place] | None
    cuts: tuple[int, ...]
    private_arrays: tuple[str, ...] = ()
    copies: tuple[Copies, ...] = ()
    block: str = ""
    takes_tiles: bool = False
    is_listed: bool = False
    integers: Mapping[str, Bracket] = field(default_factory=dict)
    relaxed: Relaxed = NOT_RELAXED
    rests: bool = False
    looked_through: frozenset[str] = frozenset()

    # ------------------------------------------------------------ arrays

    def array(self, name: str) -> ArrayType | None:
        """The type of a dense array from outside the loop; None for any other name."""
        kind = self.types.get(name)
        if kind is None and name in self.roles.inputs and self.typing.name(name).rank > 0:
            local = self.typing.name(name)  # made by the function before the loop
            return ArrayType(local.dtype, local.rank)
        return kind if isinstance(kind, ArrayType) else None

    def sparse(self, name: str) -> SparseType | None:
        kind = self.types.get(name)
        return kind if isinstance(kind, SparseType) else None

    def stride(self, name: str) -> int:
        """Elements from one row (last dimension) of a C-contiguous array to the next."""
        kind = self.array(name)
        assert kind is not None
        shape = self.shapes[name]
        return padded_shape(shape, np.dtype(kind.dtype))[-1] if kind.padded else shape[-1]

    def is_padded(self, name: str) -> bool:
        """Whether the storage of the array is wider than the array."""
        kind = self.array(name)
        return kind is not None and kind.padded and self.stride(name) != self.shapes[name][-1]

    def literal_length(self, length: Expr | None) -> int | None:
        """A length of a row as a number, where it is one for this call."""
        match length:
            case Const(int(value)):
                return value
            case Dim(array, axis) if array in self.shapes:
                return self.shapes[array][axis]
            case _:
                return None

    def register_row(self, kind: ValueType) -> int | None:
        """The length of a row that can be held in registers; None where it can't be."""
        if kind.rank != 1 or kind.dtype not in ("float32", "float64"):
            return None
        length = self.literal_length(kind.lengths[0])
        return length if length is not None and 1 <= length <= MAX_REGISTER_ROW else None

    # ------------------------------------------------------------ subscripts and scalars

    def is_proved(self, subscript: Subscript, axis: int | None = None) -> bool:
        """Whether a subscript of an element or a row is known to be inside its array; without an axis, all of them."""
        base, names = subscript.base.name, tuple(p.name if isinstance(p, Var) else "" for p in subscript.index)
        if any(base == buffer.name or (base, names) == (buffer.array, buffer.indices) for buffer in self.nest.buffers):
            return True
        if self.proved is not None:
            points = [k for k, part in enumerate(subscript.index) if not isinstance(part, Slice)]
            return all((subscript.span, one) in self.proved for one in (points if axis is None else [axis]))
        return all(isinstance(part, Var) and part.name in self.nest.dims for part in subscript.index)

    def reduction(self, name: str) -> Reduction | None:
        return next((reduction for reduction in self.roles.reductions if reduction.name == name), None)

    def is_chosen(self, name: str) -> bool:
        """Whether a scalar is one of the best values that the loop takes from its iterations."""
        return any(choice.names[0] == name and choice.comparison is not None for choice in self.roles.choices)

    def declared(self, name: str) -> str:
        """The dtype in which the kernel keeps a scalar: that of the loop; a sum of floats has 64 bits."""
        dtype = self.typing.name(name).dtype
        reduction = self.reduction(name)
        if reduction is None or reduction.op not in ("+", "*") or dtype == "uint64":
            return dtype
        return WIDEST.get(np.dtype(dtype).kind, "int64")

    def names_used(self) -> set[str]:
        """Every name that the loops mention, dims and values of elements included."""
        found = set(self.nest.dims) | set(assigned_places(self.nest.body)) | {n for p in self.nest.limits for n in p}
        for part in self.parts():
            if isinstance(part, Var):
                found.add(part.name)
            elif isinstance(part, Dim | Count):
                found.add(part.array)
        found |= {name for one in self.nest.late for name in one.names}
        elements = self.nest.elements
        return found | (set(elements.values) | {elements.array} if elements else set())

    def parts(self) -> list[Node]:
        """All nodes of the loops: their bounds and their body."""
        bounds = [part for space in self.nest.ranges for part in walk(space)]
        return bounds + [part for statement in self.nest.body for part in walk(statement)]

    def scalar_inputs(self) -> list[str]:
        """The scalars that the loop takes from outside, by name."""
        return [name for name in self.roles.inputs if self.array(name) is None and self.sparse(name) is None]
