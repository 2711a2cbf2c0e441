"""Readings and writings in the iterations of a loop, as maps of isl."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.ir.nodes import Node
from orion.verify.text_values import Definition, all_of, names_of

if TYPE_CHECKING:
    import islpy as isl


@dataclass(frozen=True, slots=True)
class Leaving:
    """When a subscript is `outside` of an axis of its array, and when it is `negative`, as isl text."""

    axis: int
    outside: str
    negative: str


@dataclass(frozen=True, slots=True)
class Element:
    """A value that a subscript, or a bound, reads from an array of integers which nothing writes: `name` in conditions.
    `at` says, as isl text, that it is at p0, p1, … of `rank` axes."""

    name: str
    array: str
    rank: int
    at: tuple[str, ...]

    @property
    def place(self) -> tuple[str, ...]:
        return tuple(f"p{axis}__" for axis in range(self.rank))


@dataclass(frozen=True, slots=True)
class Event:
    """A reading or writing of an array, or of a scalar as an array without dimensions, in an iteration.

    `around` says, as isl text, for which (x, v) it is, and `at` for which e, over the dimensions `dims` and e0, e1, …;
    all other names that are not defined (`Iterations.definitions`) are parameters. `leaving` says when its
    subscripts leave the array. `place[0], v[0], place[1], v[1], …` is its time in the
    iteration. `is_exact`: all affine parts of the text are in the conditions; `is_sure`: it happens for all (x, v) that
    the conditions leave, and touches all of these e; `is_certain`: it happens for all of them, whichever e it touches.
    `elements` are values that its subscripts and the bounds around it read, and `by_elements` what these say of (x, v)
    and e.
    """

    array: str
    node: Node
    is_write: bool
    dims: tuple[str, ...]
    rank: int
    around: tuple[str, ...]
    at: tuple[str, ...]
    leaving: tuple[Leaving, ...]
    place: tuple[int, ...]
    is_exact: bool
    is_sure: bool
    is_certain: bool
    elements: tuple[Element, ...] = ()
    by_elements: tuple[str, ...] = ()

    @property
    def element(self) -> tuple[str, ...]:
        return tuple(f"e{axis}__" for axis in range(self.rank))

    def __repr__(self) -> str:
        return f"<Event: {self.array} {'written' if self.is_write else 'read'}, {' and '.join(self.at)}>"


@dataclass(frozen=True, slots=True)
class Iterations:
    """The iterations of a loop: the names of their coordinates, the conditions on these, and what each of them does.
    `is_complete`: no condition is missing, so that these are the iterations for each value of the parameters;
    `is_exact`: the parameters have all values that the conditions leave, too. `definitions` are those of the names that
    conditions have beside."""

    dims: tuple[str, ...]
    conditions: tuple[str, ...]
    events: tuple[Event, ...]
    is_complete: bool
    is_exact: bool
    definitions: Sequence[Definition]

    def domain(self, context: isl.Context) -> isl.Set:
        """The iterations."""
        return self.as_map((), self.dims, self.conditions, context).range()

    def touched(self, event: Event, context: isl.Context) -> isl.Map:
        """x → e."""
        import islpy as isl

        relation = self.placed(event, context)
        inner = len(event.dims) - len(self.dims)
        return relation.project_out(isl.dim_type.in_, len(self.dims), inner)

    def placed(self, event: Event, context: isl.Context) -> isl.Map:
        """(x, v) → e."""
        return self.as_map(event.dims, event.element, (*event.around, *event.at), context)

    def placed_by(self, event: Event, context: isl.Context) -> isl.Map:
        """(x, v, values of elements) → e."""
        inside = (*event.around, *event.at, *event.by_elements)
        return self.as_map(self._with_elements(event), event.element, inside, context)

    def read(self, event: Event, element: Element, context: isl.Context) -> isl.Map:
        """(x, v, values of elements) → (p, value) of one of them."""
        inside = (*event.around, *element.at, f"value__ = {element.name}")
        return self.as_map(self._with_elements(event), (*element.place, "value__"), inside, context)

    def _with_elements(self, event: Event) -> tuple[str, ...]:
        return (*event.dims, *(element.name for element in event.elements))

    def leaving(self, event: Event, context: isl.Context) -> Iterator[isl.Set]:
        """The parameters for which a subscript leaves its array for sure, by subscripts."""
        if event.is_certain:
            for one in event.leaving:
                yield self.instances(event, one.outside, context).params()

    def instances(self, event: Event, condition: str, context: isl.Context) -> isl.Set:
        """The (x, v) at which an event is, where a condition holds."""
        return self.as_map((), event.dims, (*event.around, condition), context).range()

    def as_map(
        self, dims: Sequence[str], to: Sequence[str], conditions: Sequence[str], context: isl.Context
    ) -> isl.Map:
        """A map by conditions; the names in them that have definitions are hidden."""
        import islpy as isl

        text, hidden = defined(conditions, self.definitions)
        names = sorted(set(names_of(text)) - {*dims, *to, *hidden})
        pair = f"[{', '.join(dims)}] -> [{', '.join(to)}]"
        exists = f"exists {', '.join(hidden)}: " if hidden else ""
        return isl.Map(f"[{', '.join(names)}] -> {{ {pair} : {exists}({text}) }}", context)


def defined(conditions: Sequence[str], definitions: Sequence[Definition]) -> tuple[str, list[str]]:
    """Conditions with the definitions of the names in them, and these names."""
    texts, hidden = list(conditions), list[str]()
    known = {one.name: one.text for one in definitions}
    for text in texts:  # grows meanwhile
        for name in names_of(text):
            if name in known and name not in hidden:
                hidden.append(name)
                texts.append(known[name])
    return all_of(texts), hidden
