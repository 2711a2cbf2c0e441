"""What a loop evaluates only for some values of a scalar that its iterations combine.

`hit = hit or a[i] > 3` reads a[i] while `hit` is false, and `if a[i] > best and b[i] > 0: best = a[i]` reads b[i] where
a[i] is better than all before it. Workers that share out the iterations know the scalar of their own tiles alone, and
evaluate more than Python would. That does no harm where nothing of it can fail. Where a subscript may leave its array,
or a divisor may be 0, the iterations must run one after the other (`Function.in_turn`). So they must where numbers
are joined, `last = last and a[i]`: which of them is the value is for the last one to say that decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from orion.dataclass import dataclass, replace
from orion.dependence.bounds import BoundsChecks, prove_bounds
from orion.dependence.choices import choice_of, guarded_values
from orion.ir.function import Function
from orion.ir.nodes import Assign, Binary, Call, Const, Expr, If, Logic, Subscript, Unary, Var, walk
from orion.ir.printer import print_expr
from orion.ir.program import LoopNest
from orion.source import Span
from orion.typing.expression_types import Typing


@dataclass(frozen=True, slots=True)
class Guarded:
    """A scalar, and the subscripts that are evaluated for some of its values only, as text. `why` says why it must be
    computed in turn whatever these are: anything else there may fail, which is a division by zero, an integer to a
    negative power, a helper function; or what is joined are numbers, not truth values. It is empty where neither
    holds."""

    name: str
    subscripts: tuple[tuple[Span, str], ...]
    why: str

    @property
    def spans(self) -> frozenset[Span]:
        """The places of the subscripts."""
        return frozenset(span for span, _ in self.subscripts)


def guarded_by(function: Function, typing: Typing, names: Set[str]) -> tuple[Guarded, ...]:
    """What is evaluated in the function for some values of these scalars only, where anything of it may fail, and the
    scalars that numbers are joined to."""
    found: dict[str, list[Expr]] = {}
    numbers: dict[str, str] = {}
    for node in (node for statement in function.body for node in walk(statement)):
        for name, parts in _guards(node):
            if name in names:
                found.setdefault(name, []).extend(parts)
        match node:
            case Assign(Var(name), Logic(_, operands)) if name in names:
                numbers.update((name, _quoted(one)) for one in _numbers(operands, name, typing))
    every = [_guarded(name, found.get(name, ()), typing, numbers) for name in dict.fromkeys((*found, *sorted(numbers)))]
    return tuple(one for one in every if one.subscripts or one.why)


def _numbers(operands: Iterable[Expr], name: str, typing: Typing) -> Iterator[Expr]:
    others = (operand for operand in operands if not (isinstance(operand, Var) and operand.name == name))
    yield from (operand for operand in others if typing.of(operand).dtype != "bool")


def _quoted(expr: Expr) -> str:
    return f"`{print_expr(expr)}`"


def not_proved(
    guarded: Iterable[Guarded], checks: Iterable[BoundsChecks], values: Mapping[str, int], nest: LoopNest
) -> dict[str, str]:
    """The scalars for which something may fail, at these values of isl's parameters, that Python might not evaluate,
    and what that is."""
    guarded = tuple(guarded)
    spans = frozenset[Span]().union(*(one.spans for one in guarded))
    proved: set[Span] = set()
    for loop in checks:
        own = tuple(replace(check, is_certain=False) for check in loop.checks if check.span in spans)
        places = prove_bounds(BoundsChecks(own, loop.unchecked), values, nest)
        unsure = {(check.span, check.axis) for check in own} - places | loop.unchecked
        proved |= {check.span for check in own} - {span for span, _ in unsure}
    return {one.name: why for one in guarded if (why := one.why or _outside(one, proved))}


def _outside(one: Guarded, proved: Set[Span]) -> str:
    text = next((text for span, text in one.subscripts if span not in proved), "")
    return f"{text} may be outside its array" if text else ""


def _guards(node: object) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    match node:
        case Assign(Var(name), Logic(_, (Var(first), *rest))) if name == first:
            yield name, tuple(rest)
        case If() if (choice := choice_of(node)) is not None:
            yield choice.names[0], guarded_values(choice, node)
        case _:
            pass


def _guarded(name: str, parts: Iterable[Expr], typing: Typing, numbers: Mapping[str, str]) -> Guarded:
    nodes = [node for part in parts for node in walk(part) if isinstance(node, Expr)]
    subscripts = dict.fromkeys((node.span, _quoted(node)) for node in nodes if isinstance(node, Subscript))
    why = next((f"{_quoted(node)} may fail" for node in nodes if may_fail(node, typing)), "")
    if name in numbers:
        why = f"{numbers[name]} is a number, not a truth value"
    return Guarded(name, tuple(subscripts), why)


def may_fail(node: object, typing: Typing) -> bool:
    """Whether a node that is no subscript may fail in an iteration in which Python does not evaluate it."""
    match node:
        case Binary("/" | "//" | "%", left, right):
            return typing.of(left).weak and typing.of(right).weak and not _is_nonzero(right)
        case Binary("**", left, right):
            is_integer = typing.of(left).is_integer and typing.of(right).is_integer
            return is_integer and not (isinstance(right, Const) and isinstance(right.value, int) and right.value >= 0)
        case Call("np.power"):
            return typing.of(node).is_integer  # to a negative one
        case Call(function):
            return function.startswith("helper:") or function == "orion.random.integers"  # of an empty range
        case _:
            return False


def _is_nonzero(divisor: Expr) -> bool:
    literal = divisor.operand if isinstance(divisor, Unary) else divisor
    return isinstance(literal, Const) and bool(literal.value)
