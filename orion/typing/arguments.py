"""What the rules for types of calls are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from orion.dataclass import dataclass
from orion.ir.nodes import Call, Expr
from orion.typing.problems import TypeProblem
from orion.typing.rewritten import by_position
from orion.typing.value_type import ValueType


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a call is given. `dtypes` are the arguments that are dtypes, by keyword or, as text, position;
    `single` the names whose Python numbers fit single precision."""

    call: Call
    types: tuple[ValueType, ...]
    dtypes: Mapping[str, str]
    single: Set[str]

    def type(self, position: int) -> ValueType:
        if position >= len(self.types):
            hint = "write its arguments by position" if self.call.keywords else ""
            text = by_position(self.call)
            raise TypeProblem(f"`{self.call.function}` is given too few arguments", "", hint, replaced_by=text)
        return self.types[position]

    def dtype(self, position: int) -> str | None:
        """The dtype that is asked for, by keyword or at that position."""
        return self.dtypes.get("dtype", self.dtypes.get(str(position)))

    def keyword(self, name: str, position: int | None = None) -> Expr | None:
        by_name = dict(self.call.keywords).get(name)
        given = self.call.arguments
        return given[position] if by_name is None and position is not None and position < len(given) else by_name


Rule = Callable[[Arguments], ValueType]
