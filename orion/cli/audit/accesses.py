"""The accesses of a loop to arrays, by the compiler's analysis, and which of them meet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter

from orion.cli.audit.bounds import outside_rows
from orion.cli.audit.extract import Extracted
from orion.cli.audit.ranks import types_of
from orion.dataclass import dataclass
from orion.dependence.access import Access, Dependence
from orion.dependence.conflicts import find_dependences
from orion.dependence.flat_rows import lengths_of_rows
from orion.dependence.model import Space, access_relation, own_space
from orion.dependence.references import Reference, collect_references, loop_scope
from orion.dependence.scalars import scalar_roles
from orion.errors import OrionError
from orion.frontend.parse import parse_with_outside
from orion.ir.function import Function
from orion.ir.nodes import For, Range
from orion.ir.program import LoopNest, form_of
from orion.ir.types import ArrayType, Types
from orion.passes.delinearize import with_row_types, with_rows
from orion.pipeline import through_passes
from orion.sets.affine import Form
from orion.sets.maps import Maps
from orion.sets.names import extent_name
from orion.typing.infer import infer_types, with_local_arrays
from orion.typing.narrow import with_local_integers

MAX_REFERENCES = 400
SECONDS = 10.0
"""What comparing the accesses of one loop may take."""


class NotAnalysed(Exception):  # noqa: N818 - a signal inside the audit
    """The compiler has no accesses of the loop; the message says why."""


class OutOfWork(NotAnalysed):
    """There is too much to compare."""


@dataclass(frozen=True, slots=True)
class Model:
    """A loop as the analysis sees it: one dimension, the accesses of an iteration, and its integer sets."""

    nest: LoopNest
    types: Types
    scope: Mapping[str, Form]
    space: Space
    references: tuple[Reference, ...]
    accesses: tuple[Access, ...]
    maps: Maps

    def dependences(self) -> tuple[Dependence, ...]:
        """Return the pairs of accesses by which iterations conflict. Raises `OutOfWork`."""
        return tuple(self._dependences())

    def _dependences(self) -> Iterator[Dependence]:
        end, domain = perf_counter() + SECONDS, self.space.text()
        for array in dict.fromkeys(one.array for one in self.accesses):
            own = [one for one in self.accesses if one.array == array]
            for first in range(len(own)):
                for second in range(first, len(own)):
                    pair = own[first : first + 1] if first == second else [own[first], own[second]]
                    if any(one.is_write for one in pair):
                        if perf_counter() > end:
                            raise OutOfWork(f"comparing the accesses to `{array}` takes longer than {SECONDS:.0f} s")
                        yield from self._between(pair, domain)

    def _between(self, pair: list[Access], domain: str) -> Iterator[Dependence]:
        """The conflicts of two accesses, or of one with itself in other iterations."""
        for one in find_dependences(pair, domain, 1, ordered=True, maps=self.maps):
            if (len(pair) == 1 or one.source is not one.sink) and self._is_possible(one):
                yield one

    def _is_possible(self, one: Dependence) -> bool:
        """Whether a conflict is there for arrays that have no negative lengths."""
        import islpy as isl

        relation = self.maps.map(one.relation)
        extents = {
            extent_name(name, axis)
            for name, kind in self.types.items()
            if isinstance(kind, ArrayType)
            for axis in range(kind.ndim)
        }
        zero = isl.Val.zero(relation.get_ctx())
        for position in range(relation.dim(isl.dim_type.param)):
            if relation.get_dim_name(isl.dim_type.param, position) in extents:
                relation = relation.lower_bound_val(isl.dim_type.param, position, zero)
        return not relation.is_empty()


def model_of(extracted: Extracted, line: int) -> Model:
    """Return the model of an extracted loop, which begins in this line. Raises `NotAnalysed`."""
    function, types = _function_of(extracted)
    flat = with_rows(function, types)
    if flat is not None:
        found = _model(flat, with_row_types(types, flat.rows), line)
        if _stays_in_rows(found):
            return found
    return _model(function, types, line)


def _stays_in_rows(model: Model) -> bool:
    """Whether the subscripts of flattened arrays stay within rows at all sizes, so that each stands for one element."""
    equal = model.maps.set(lengths_of_rows(model.nest.function.rows))
    arrays = {one.array for one in model.nest.function.rows}
    for reference in model.references:
        for text in outside_rows(reference, model.space) if reference.array in arrays else ():
            if text is None or not model.maps.set(text).intersect_params(equal).is_empty():
                return False
    return True


def _model(function: Function, types: Types, line: int) -> Model:
    loops = [one for one in function.body if isinstance(one, For) and one.span.line == line]
    if len(loops) != 1 or not isinstance(loops[0].space, Range):
        raise NotAnalysed("the loop is no range for the analysis")
    if function.lists or function.turns:
        raise NotAnalysed("the loop makes lists, whose items have places that depend on other iterations")
    loop = loops[0]
    space = loop.space
    assert isinstance(space, Range)
    nest = LoopNest(0, form_of(loop), (loop,), (space.var,), loop.body, True, function)
    scope = loop_scope(nest, types)
    own = own_space(nest, types, scope)
    references = collect_references(nest, types, scope)
    if len(references) > MAX_REFERENCES:
        raise OutOfWork(f"the loop has {len(references)} accesses to arrays")
    maps = Maps()
    accesses = tuple(access_relation(one, own, maps) for one in references)
    return Model(nest, types, scope, own, references, accesses, maps)


def _function_of(extracted: Extracted) -> tuple[Function, Types]:
    try:
        parsed, _ = parse_with_outside(extracted.function, located=extracted.located)
        ranks = {name: rank for name, rank in extracted.ranks.items() if name in parsed.params}
        types = types_of(parsed, ranks)
        function = through_passes(parsed, types)
        types = with_local_arrays(types, function)
        return function, with_local_integers(types, infer_types(function, types))
    except OrionError as error:
        raise NotAnalysed(first_words(error)) from error
    except (RecursionError, MemoryError) as error:
        raise OutOfWork("the loop is too large") from error


def first_words(error: OrionError) -> str:
    """Return what an error says, without the place and the lines below."""
    first = str(error).splitlines()[0]
    head, _, rest = first.partition(": ")
    return rest if rest and ":" in head else first


def carried_scalars(model: Model) -> tuple[str, ...]:
    """Return the scalars that carry values by the compiler's analysis."""
    roles = scalar_roles(model.nest, model.types, frozenset())
    return tuple(name for name, _ in roles.carried)
