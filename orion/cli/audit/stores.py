"""Whether two iterations store different values in one element, as far as their text shows.

Stores of one value by several iterations do no harm. So a conflict of two stores is a race only where what is stored is
made from different elements, or from different values of loop variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from orion.cli.audit.accesses import Model
from orion.cli.audit.points import Meeting
from orion.cli.audit.purity import OPAQUE
from orion.dataclass import dataclass
from orion.dependence.model import inner_constraints
from orion.dependence.references import Axis, InnerLoop, Interval, Reference
from orion.ir.nodes import (
    Assign,
    Binary,
    Bind,
    Const,
    Expr,
    Node,
    Subscript,
    Tuple,
    Update,
    Var,
    children,
    every,
    names_in,
    walk,
)
from orion.ir.printer import print_expr
from orion.ir.types import ArrayType
from orion.sets.affine import Affine, Condition, affine_form, itself
from orion.sets.names import isl_name, parameter_list

if TYPE_CHECKING:
    import islpy as isl

MAX_LEAVES = 40
NEUTRAL = {"+": (0,), "-": (0,), "*": (0, 1), "/": (0, 1), "//": (0, 1), "**": (0, 1)}
"""Operators that change an element again when they are repeated, and the numbers with which they do not."""


@dataclass(frozen=True, slots=True)
class Store:
    """A statement that stores in an array: the subscript, the value, and whether it updates what is there.

    `accumulates` where to do the same update twice is not to do it once.
    """

    target: Subscript
    value: Expr
    is_update: bool
    accumulates: bool = False


def stores_of(model: Model) -> dict[int, Store]:
    """Return the stores of a loop by the identity of their subscripts."""
    found = {}
    for node in every((Assign, Update), *model.nest.body):
        targets = node.target.items if isinstance(node.target, Tuple) else (node.target,)
        for target in targets:
            if isinstance(target, Subscript):
                reads = {print_expr(one) for one in every(Subscript, node.value)}
                is_update = isinstance(node, Update) or print_expr(target) in reads
                found[id(target)] = Store(target, node.value, is_update, _accumulates(node))
    return found


def _accumulates(node: Assign | Update) -> bool:
    """Whether a statement updates by an operator that counts how often, and by no number that changes nothing."""
    match node:
        case Update(_, op, value):
            return _counts(op, value)
        case Assign(_, Binary(op, left, right)):
            return _counts(op, left) and _counts(op, right)
        case _:
            return isinstance(node.target, Tuple)


def _counts(op: str, value: Expr) -> bool:
    neutral = NEUTRAL.get(op)
    return neutral is not None and not (isinstance(value, Const) and value.value in neutral)


def only_constant(stores: Iterable[Store]) -> bool:
    """Whether all stores are of one constant."""
    values = {print_expr(one.value) if isinstance(one.value, Const) and not one.is_update else "" for one in stores}
    return len(values) == 1 and "" not in values


class Differences:
    """Looks for what two iterations make the values from that they store in one element."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.stores = stores_of(model)
        self.references = {id(one.subscript): one for one in model.references if not one.is_write and one.subscript}

    def differ(self, first: Reference, second: Reference, met: Meeting) -> bool:
        """Whether two stores, in the two iterations of a meeting, are seen to be of different values."""
        if first.subscript is None or second.subscript is None:
            return False
        one, other = (self.stores.get(id(each.subscript)) for each in (first, second))
        if one is None or other is None:
            return False
        if one.target is not other.target:
            return self.other_constants(one, other) or self.other_elements((one, first), (other, second), met)
        leaves = list(self.leaves(one.value, first))[:MAX_LEAVES]
        return any(self.differs(leaf, first, met) for leaf in leaves)

    def other_elements(self, one: tuple[Store, Reference], other: tuple[Store, Reference], met: Meeting) -> bool:
        """Whether two statements make their values from other elements of an array."""
        found: list[dict[str, isl.Set]] = []
        for (store, reference), iteration in zip((one, other), (met.first, met.second), strict=True):
            images: dict[str, isl.Set] = {}
            for leaf in list(self.leaves(store.value, reference))[:MAX_LEAVES]:
                text = self.relation(leaf, reference)
                if text is None or not isinstance(leaf, Reference):
                    return False
                image = met.at(self.model.maps.map(text), iteration)
                images[leaf.array] = images[leaf.array].union(image) if leaf.array in images else image
            found.append(images)
        first, second = found
        return any(array not in second or not image.is_equal(second[array]) for array, image in first.items())

    @staticmethod
    def other_constants(one: Store, other: Store) -> bool:
        is_constant = isinstance(one.value, Const) and isinstance(other.value, Const)
        return is_constant and print_expr(one.value) != print_expr(other.value)

    # ------------------------------------------------------------ leaves

    def leaves(self, value: Expr, store: Reference) -> Iterator[Reference | Affine]:
        """What a value is made from: reads of arrays, and sums of loop variables in the store itself."""
        yield from self.sums(value, store)
        seen: set[str] = set()
        waiting: list[Node] = [value]
        while waiting:
            node = waiting.pop()
            for part in walk(node):
                if isinstance(part, Subscript) and self.is_leaf(part):
                    yield self.references[id(part)]
            for name in names_in(node) - seen:
                seen.add(name)
                if not isinstance(self.model.types.get(name), ArrayType):
                    waiting += self.given(name)

    def is_leaf(self, part: Subscript) -> bool:
        return id(part) in self.references and not part.base.name.startswith(OPAQUE)

    def given(self, name: str) -> Iterator[Node]:
        """The values that the body gives a name, or its elements."""
        for node in every((Assign, Update, Bind), *self.model.nest.body):
            match node:
                case Assign(target, value) | Update(target, _, value):
                    if name in {one.name for one in _bases(target)}:
                        yield value
                case Bind(own, row) if own == name:
                    yield row

    def sums(self, value: Expr, store: Reference) -> Iterator[Affine]:
        dims = {isl_name(self.model.nest.dims[0]), *(loop.var for loop in store.inner)}
        scope = {**self.model.scope, **{loop.var: itself(loop.var) for loop in store.inner}}
        waiting: list[Node] = [value]
        while waiting:
            node = waiting.pop()
            form = None if isinstance(node, Subscript) else affine_form(node, scope)  # type: ignore[arg-type]
            if isinstance(form, Affine):
                if form.names & dims:
                    yield form
            elif not isinstance(node, Subscript):
                waiting += children(node)

    # ------------------------------------------------------------ comparing

    def differs(self, leaf: Reference | Affine, store: Reference, met: Meeting) -> bool:
        """Whether a leaf is something else in the two iterations, where they store in the element."""
        text = self.relation(leaf, store)
        if text is None:
            return False
        found = [met.at(self.model.maps.map(text), iteration) for iteration in (met.first, met.second)]
        return not any(one.is_empty() for one in found) and not found[0].is_equal(found[1])

    def relation(self, leaf: Reference | Affine, store: Reference) -> str | None:
        """The map from (iteration, element) to what the leaf is; None where subscripts are not affine."""
        space = self.model.space
        inner = list(store.inner)
        made: list[object] = [leaf]
        guards: tuple[Condition, ...] = ()
        if isinstance(leaf, Reference):
            shared = _shared(store, leaf)
            renamed = {loop.var: f"{loop.var}l_" for loop in leaf.inner[shared:]}
            inner += [_renamed_loop(loop, renamed) for loop in leaf.inner[shared:]]
            made = [_renamed(axis, renamed) for axis in leaf.axes]
            guards = leaf.guards if not renamed else ()
        axes = [_inside(f"e{axis}", form) for axis, form in enumerate(store.axes)]
        forms = [one for one in made if isinstance(one, Affine)]
        if len(forms) < len(made) or not all(axes):
            return None
        elements = [f"e{axis}" for axis in range(len(store.axes))]
        values = [f"v{axis}" for axis in range(len(made))]
        constraints = [*space.constraints, *space.equations]
        constraints += [text for loop in inner for text in inner_constraints(loop)]
        constraints += [guard.text for guard in (*store.guards, *guards)]
        constraints += [text for texts in axes for text in texts]
        constraints += [f"{name} = {form.text}" for name, form in zip(values, forms, strict=True)]
        hidden = [*space.values, *(loop.var for loop in inner)]
        names = {name for text in constraints for name in re.findall(r"[A-Za-z_]\w*", text)} - WORDS
        names -= {*hidden, *space.dims, *elements, *values}
        exists = f"exists {', '.join(hidden)}: " if hidden else ""
        head = f"{parameter_list(names)}{{ [{', '.join((*space.dims, *elements))}] -> [{', '.join(values)}]"
        return f"{head} : {exists}{' and '.join(constraints)} }}"


WORDS = frozenset({"and", "or", "not", "mod", "floor", "min", "max", "exists", "true", "false", "floord"})


def _inside(name: str, axis: Axis) -> list[str]:
    """What holds of a subscript of an element that a store is to; nothing where that is not known."""
    match axis:
        case Affine(text):
            return [f"{name} = {text}"]
        case Interval(Affine() | None as lower, Affine() | None as upper, None):
            low = lower.as_lower if lower is not None else ("0",)
            return [
                *(f"{name} >= {one}" for one in low),
                *(f"{name} < {one}" for one in (upper.as_upper if upper else ())),
            ]
        case _:
            return []


def _bases(target: Expr) -> Sequence[Var]:
    match target:
        case Subscript(base):
            return (base,)
        case Var():
            return (target,)
        case Tuple(items):
            return tuple(one for item in items for one in _bases(item))
        case _:
            return ()


def _shared(store: Reference, leaf: Reference) -> int:
    """How many loops two accesses stand in together."""
    count = 0
    for one, other in zip(store.place[:-1], leaf.place[:-1], strict=False):
        if one != other:
            break
        count += 1
    return count


def _renamed(form: object, names: dict[str, str]) -> object:
    if not isinstance(form, Affine) or not names:
        return form
    text = re.sub(r"[A-Za-z_]\w*", lambda found: names.get(found[0], found[0]), form.text)
    least, most = form.least, form.most
    if least or most:
        return None
    return Affine(text, frozenset(names.get(one, one) for one in form.names), form.value)


def _renamed_loop(loop: InnerLoop, names: dict[str, str]) -> InnerLoop:
    start, stop, step = (_renamed(form, names) or form for form in (loop.start, loop.stop, loop.step))
    return InnerLoop(names[loop.var], start, stop, step)  # type: ignore[arg-type]
