"""Boxes in buffers: that a box computes in them what it would compute in the arrays, read from the text.

In the text of a box, elements of an array A are copied to a buffer, I = {(element, place)}; instances use places
instead of elements, U, and write some of them, W ⊆ U; places are copied back, O. With all I before all U before all O,

    I is a bijection;   U ⊆ I;   O ⊆ I;   {elements of O} = {elements of W};   no instance in between uses A itself

make the text do what the instances would do to A itself: in between, the buffer has at the place of an element what A
would have. Elements that are copied but not written are neither changed nor written back; they may be others'. So may
those that are copied and not used. Beside that, places are proved to lie in the buffer and elements in the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from orion.dataclass import dataclass
from orion.errors import PlanError
from orion.ir.nodes import Assign, Expr, Stmt, Subscript, Update, every, walk
from orion.ir.program import Buffer
from orion.ir.rewriting import rewrite
from orion.sets.names import extent_name, number_text
from orion.source import Span
from orion.verify.statements import Statement
from orion.verify.text_values import Scope, UnprovedError, all_of, compared, names_of

if TYPE_CHECKING:
    import islpy as isl

COPY_IN, USE, WRITE, COPY_OUT, DIRECT = "in", "use", "write", "out", "direct"

Found = Mapping[str, "isl.Set"]


@dataclass(frozen=True, slots=True)
class Touch:
    """A place in a buffer and the element of the array that it stands for; both empty for the array itself. `number`
    tells apart the uses in one statement: each is a set of one piece, which all of them together are not."""

    kind: str
    buffer: str
    element: tuple[Expr, ...] = ()
    place: tuple[Expr, ...] = ()
    number: int = 0

    @property
    def key(self) -> str:
        return f"{key(self.kind, self.buffer)}{self.number}"

    def pairs(self, scope: Scope, context: isl.Context) -> isl.Set:
        """The pair of element and place, as a wrapped map."""
        import islpy as isl

        element = [f"e{axis}__" for axis in range(len(self.element))]
        place = [f"p{axis}__" for axis in range(len(self.place))]
        names = zip([*element, *place], [*self.element, *self.place], strict=True)
        text = all_of([compared({name: 1}, "==", scope.value(value)) for name, value in names])
        params = [name for name in names_of(text) if name not in {*element, *place}]
        dims = f"[[{', '.join(element)}] -> [{', '.join(place)}]]"
        return isl.Set(f"[{', '.join(params)}] -> {{ {dims} : {text} }}", context)


def key(kind: str, buffer: str) -> str:
    """What begins the keys that stand for it beside the names of statements, none of which has a space."""
    return f"{kind} {buffer} "


def _all(found: Found, begin: str) -> list[isl.Set]:
    return [values for name, values in found.items() if name.startswith(begin)]


# ---------------------------------------------------------------- reading


def copied(statement: Assign, buffers: Mapping[str, Buffer]) -> list[Touch]:
    """An assignment that copies an element to a buffer or back."""
    match statement:
        case Assign(Subscript(target, into), Subscript(source, out)):
            if target.name in buffers and buffers[target.name].array == source.name:
                return [Touch(COPY_IN, target.name, out, into)]
            if source.name in buffers and buffers[source.name].array == target.name:
                return [Touch(COPY_OUT, source.name, into, out)]
    raise UnprovedError("an assignment to an element among the generated loops")


def touched(text: Sequence[Stmt], statement: Statement, buffers: Mapping[str, Buffer]) -> list[Touch] | None:
    """What a text touches if it is that of a statement, with subscripts of buffers for those of arrays or without;
    None if it is not."""
    if tuple(text) == statement.body:
        return list(_direct(text, buffers))
    if not buffers or len(text) != len(statement.body):
        return None
    originals = {node.span: node for part in statement.body for node in walk(part) if isinstance(node, Subscript)}

    def original(expr: Expr) -> Expr:
        if isinstance(expr, Subscript) and expr.base.name in buffers:
            found = originals.get(expr.span)
            if found is not None and found.base.name == buffers[expr.base.name].array:
                return found
        return expr

    if tuple(rewrite(part, original) for part in text) != statement.body:
        return None
    return [*_direct(text, buffers), *_in_buffers(text, originals, buffers)]


def _direct(text: Iterable[Stmt], buffers: Mapping[str, Buffer]) -> Iterator[Touch]:
    """The arrays with buffers that a text uses themselves."""
    names = {node.base.name for node in every(Subscript, *text)}
    yield from (Touch(DIRECT, buffer.name) for buffer in buffers.values() if buffer.array in names)


def _in_buffers(
    text: Iterable[Stmt], originals: Mapping[Span, Subscript], buffers: Mapping[str, Buffer]
) -> Iterator[Touch]:
    for part in text:
        for number, node in enumerate(walk(part)):
            if isinstance(node, Subscript) and node.base.name in buffers:
                yield Touch(USE, node.base.name, originals[node.span].index, node.index, number)
            if isinstance(node, Assign | Update) and isinstance(node.target, Subscript):
                target = node.target
                if target.base.name in buffers:
                    yield Touch(WRITE, target.base.name, originals[target.span].index, target.index, number)


# ---------------------------------------------------------------- proving


def closed(
    pieces: Sequence[Found], found: dict[str, isl.Set], buffers: Mapping[str, Buffer], is_empty: Callable[..., bool]
) -> dict[str, isl.Set]:
    """What a sequence of pieces does, without what it does with buffers that it copies to and uses: that is proved.

    `is_empty` says whether a set or a relation is empty at this place in the text.
    """
    for buffer in buffers.values():
        keys = {kind: key(kind, buffer.name) for kind in (COPY_IN, USE, WRITE, COPY_OUT, DIRECT)}
        if sum(bool(_all(found, keys[kind])) for kind in (COPY_IN, USE, COPY_OUT)) > 1:
            problem = _problem(pieces, found, keys, buffer, is_empty)
            if problem:
                raise PlanError(f"the copies of `{buffer.array}` in a buffer: {problem}")
            found = {name: values for name, values in found.items() if not name.startswith(tuple(keys.values()))}
    return found


def are_copies(found: Iterable[str]) -> bool:
    """Whether that is nothing but copies, which may as well be made several times."""
    return all(name.startswith((f"{COPY_IN} ", f"{COPY_OUT} ")) for name in found)


def left_open(found: Iterable[str], buffers: Mapping[str, Buffer]) -> str | None:
    """A buffer that is used where it has not been copied to."""
    for buffer in buffers.values():
        if any(name.startswith(tuple(key(kind, buffer.name) for kind in (COPY_IN, USE, COPY_OUT))) for name in found):
            return buffer.name
    return None


def _problem(
    pieces: Sequence[Found],
    found: Found,
    keys: Mapping[str, str],
    buffer: Buffer,
    is_empty: Callable[..., bool],
) -> str | None:
    import islpy as isl

    places = {kind: [at for at, piece in enumerate(pieces) if _all(piece, begin)] for kind, begin in keys.items()}
    if places[DIRECT]:
        return "the array is used beside them"
    if not places[COPY_IN]:
        return "nothing is copied there"
    after = places[COPY_OUT] or [len(pieces)]
    if not places[USE] or not max(places[COPY_IN]) < min(places[USE]) <= max(places[USE]) < min(after):
        return "they are not made before all uses and copied back after them"
    inside = _together(found, keys[COPY_IN])
    assert inside is not None
    nothing = inside.subtract(inside)
    use, write, out = (_together(found, keys[kind]) or nothing for kind in (USE, WRITE, COPY_OUT))
    axes = range(inside.dim(isl.dim_type.in_))
    extents = [extent_name(buffer.array, axis) for axis in axes]
    limits = " and ".join(f"0 <= e{axis} < {extent}" for axis, extent in zip(axes, extents, strict=True))
    array = f"[{', '.join(extents)}] -> {{ [{', '.join(f'e{axis}' for axis in axes)}] : {limits} }}"
    room = f"{{ [p] : 0 <= p < {number_text(buffer.length)} }}"
    context = inside.get_ctx()
    claims = {
        "two elements are at one place": _others(inside.apply_range(inside.reverse())),
        "an element is at two places": _others(inside.reverse().apply_range(inside)),
        "an element that is used is not copied, or is elsewhere": use.subtract(inside),
        "an element that is copied back is elsewhere": out.subtract(inside),
        "an element that is written is not copied back": write.domain().subtract(out.domain()),
        "an element is copied back that is not written": out.domain().subtract(write.domain()),
        "a place is not in the buffer": inside.range().subtract(isl.Set(room, context)),
        "an element is not in the array": inside.domain().subtract(isl.Set(array, context)),
    }
    return next((problem for problem, exceptions in claims.items() if not is_empty(exceptions)), None)


def _together(found: Found, begin: str) -> isl.Map | None:
    relation: isl.Map | None = None
    for values in _all(found, begin):
        relation = values.unwrap() if relation is None else relation.union(values.unwrap())
    return relation


def _others(relation: isl.Map) -> isl.Map:
    """The pairs of different elements."""
    import islpy as isl

    return relation.subtract(isl.Map.identity(relation.get_space()))
