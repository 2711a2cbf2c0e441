"""What the checker knows at a place of a text."""

from __future__ import annotations

from orion.dataclass import dataclass, field
from orion.ir.nodes import Expr, Logic, Unary
from orion.verify.text_values import Scope, UnprovedError


@dataclass(slots=True)
class Here:
    """What holds at a place of the text: the values of names, affine conditions, the dimensions of the loops around it.
    `missing` are bounds of these that are not known, and `unsure` parts around it that may not be run."""

    scope: Scope
    conditions: list[str]
    dims: list[str]
    missing: int
    unsure: int
    by_elements: list[str] = field(default_factory=list)
    """What bounds of these that are elements of arrays say of the dimensions."""

    def inner(self) -> Here:
        """The same for what is inside, which does not change what holds here."""
        copies = [*self.conditions], [*self.dims]
        return Here(self.scope.sharing(), *copies, self.missing, self.unsure, [*self.by_elements])

    def dimension(self) -> str:
        self.dims.append(f"x{len(self.dims)}__")
        return self.dims[-1]

    def take(self, test: Expr, wanted: bool) -> bool:
        """Note what is affine of a test that holds, or that does not; whether that is all of it. Where `a and b` holds,
        both do; where `a or b` does not, neither does."""
        match test:
            case Unary("not", operand):
                return self.take(operand, not wanted)
            case Logic(op, operands) if (op == "and") == wanted:
                known = [self.take(operand, wanted) for operand in operands]  # all of them, also after one that is not
                return all(known)
        try:
            self.conditions.append(self.scope.condition(test, wanted))
        except UnprovedError:
            return False
        return True
