"""Where the rows are kept that an iteration makes for itself."""

from __future__ import annotations

from collections.abc import Iterator

from orion.dataclass import dataclass
from orion.ir.nodes import Assign, Bind, Call, Node, Subscript, Tuple, Update, Var, every, walk
from orion.kernel.emit.facts import LoopFacts


@dataclass(frozen=True, slots=True)
class PrivateRows:
    """Where the rows are kept that an iteration makes for itself: in registers, or in a buffer that each tile has.

    Rows that are in neither are made anew by NumPy's operations.
    """

    registers: frozenset[str]
    buffers: frozenset[str]

    def without(self, names: frozenset[str]) -> PrivateRows:
        """Those of `names` that were in registers in buffers, those in buffers in neither."""
        demoted = self.registers & names
        return PrivateRows(self.registers - names, self.buffers - names | demoted)


class RowsSpilledError(Exception):
    """Private rows are used in a way that they cannot be where they were meant to be."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


def private_rows(facts: LoopFacts) -> PrivateRows:
    """Where to keep the rows that an iteration makes: in registers if they fit, else in a buffer.

    Two names of one row are kept in neither, if it may be changed in place: changing one must change the other. Nor
    is a row that another name is a view of: the view must keep the row that it was made of when the name is given a
    new one.
    """
    nodes = [node for statement in facts.nest.body for node in walk(statement)]
    found = {name for name in facts.roles.private if _is_row(facts, name)}
    found -= {name for node in nodes if isinstance(node, Bind) for name in (node.name, node.row.base.name)}
    changed = {name for node in nodes for name in _changed_in_place(node)}
    for node in nodes:
        match node:
            case Assign(Var(first), Var(second)) if {first, second} & changed:
                found -= {first, second}
            case _:
                pass
    registers = {name for name in found if facts.register_row(facts.typing.name(name)) is not None}
    return PrivateRows(frozenset(registers), frozenset(found - registers))


def _is_row(facts: LoopFacts, name: str) -> bool:
    kind = facts.typing.name(name)
    return kind.rank == 1 and facts.literal_length(kind.lengths[0]) is not None


def _changed_in_place(node: Node) -> Iterator[str]:
    """The names whose elements a statement or call may change."""
    match node:
        case Update(Var(name)) | Update(Subscript(Var(name))) | Assign(Subscript(Var(name))):
            yield name
        case Assign(Tuple(items)):
            yield from (item.base.name for item in items if isinstance(item, Subscript))
        case Call(function, arguments) if function.startswith(("helper:", ".")):
            yield from (part.name for part in every(Var, *arguments))
        case _:
            pass
