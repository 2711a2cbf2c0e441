"""A function at one call: its operations on integers, as the sizes and integers of the call have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orion.dataclass import dataclass, field
from orion.errors import leaves_64_bits, of_user
from orion.ir.function import Function
from orion.ir.nodes import Call, Const, Node, Var, walk
from orion.ir.printer import print_expr
from orion.ir.types import ScalarType, Shapes, Types
from orion.typing.expression_types import Typing
from orion.typing.functions import Form, form_of
from orion.typing.infer import infer_types, with_local_arrays
from orion.typing.narrow import in_places, is_narrow, limits_of, with_python_integers
from orion.typing.wide_integers import leaving_64_bits

MAX_SIZES = 1000
"""For how many sizes and integers a function is kept."""

SAFE = 2**40, 2**32, 2**24, 2**16
"""Arguments up to which it is tried whether all operations stay within 64 bits."""


@dataclass(frozen=True, slots=True)
class IntegersAtCall:
    """A function with operations on integers in subscripts, bounds or tests. Which of them are exact depends on the
    sizes and the values of `integers`, the integer arguments; `found` has the function by those.

    `is_narrow`: there are operations on integers of fewer than 64 bits, for which all values matter. As long as no
    integer is farther from 0 than `safe`, no operation leaves 64 bits; where it is negative, some may with any."""

    function: Function
    typing: Typing
    integers: tuple[str, ...]
    is_narrow: bool
    safe: int
    found: dict[tuple[object, ...], Function] = field(default_factory=dict)

    def at(self, shapes: Shapes, integers: Mapping[str, Any]) -> Function:
        """The function at these sizes and integers, some of which need not be given."""
        values = [integers.get(name) for name in self.integers]
        is_near = self.safe >= 0 and all(value is None or abs(int(value)) <= self.safe for value in values)
        if is_near and not self.is_narrow:
            return self.function
        key = tuple(shapes.items()), tuple(values)
        if key not in self.found:
            if len(self.found) >= MAX_SIZES:
                self.found.clear()
            if not is_near and None not in values:
                self.check_wide(shapes, integers)
            found = self.function
            self.found[key] = with_python_integers(found, self.typing, shapes, integers) if self.is_narrow else found
        return self.found[key]

    def check_wide(self, shapes: Shapes, integers: Mapping[str, Any]) -> None:
        """Raise OverflowError for an operation that may leave 64 bits at these sizes and integers."""
        found = leaving_64_bits(self.function, self.typing, shapes, limits_of(integers))
        if found is not None:
            raise of_user(OverflowError(leaves_64_bits(print_expr(found), found.span, self.function.source)))


def integers_at_call(function: Function, types: Types) -> IntegersAtCall | None:
    """A function by its integers; None where it has no operations on integers in subscripts, bounds or tests that
    depend on arguments, or may leave 64 bits by themselves."""
    typing = infer_types(function, with_local_arrays(types, function))
    has_narrow = any(is_narrow(kind.dtype) for kind in typing.names.values())
    has_narrow = has_narrow and with_python_integers(function, typing, {}, {}) is not function
    nodes = [node for statement in function.body for node in walk(statement)]
    drawn = only_drawn_by(nodes)
    scalars = (name for name, kind in typing.arguments.items() if isinstance(kind, ScalarType) and name not in drawn)
    integers = tuple(name for name in scalars if typing.name(name).is_integer)
    if not has_narrow:
        places = in_places(nodes)
        integers = tuple(name for name in integers if name in places)
    is_wide = any(isinstance(node, Const) and isinstance(node.value, int) and node.value > SAFE[-1] for node in nodes)
    safe = _safe(function, typing, integers) if integers or has_narrow or is_wide or function.constants else SAFE[0]
    if safe >= 0 and not integers and not has_narrow:
        return None
    return IntegersAtCall(function, typing, integers, has_narrow, safe)


def only_drawn_by(nodes: Sequence[Node]) -> set[str]:
    """The names that are nothing but the seed or a key of random numbers: their values decide no operation, and are
    others in each call most often.

    >>> from orion.ir.nodes import Call, Var
    >>> from orion.source import Span
    >>> span = Span("f.py", 1, 0, 1, 1)
    >>> low, seed, i = (Var(name, span) for name in ("low", "seed", "i"))
    >>> call = Call("orion.random.integers", (low, i, seed, i), span)
    >>> only_drawn_by([call, low, i, seed, i])
    {'seed'}
    """
    drawn: Counter[str] = Counter()
    for node in nodes:
        if isinstance(node, Call) and form_of(node.function) is Form.KEYED:
            limits = 2 if node.function == "orion.random.integers" else 0
            drawn.update(one.name for one in node.arguments[limits:] if isinstance(one, Var))
    used = Counter(node.name for node in nodes if isinstance(node, Var))
    return {name for name, count in drawn.items() if count == used[name]}


def _safe(function: Function, typing: Typing, integers: Iterable[str]) -> int:
    """A number such that no operation leaves 64 bits while the integers are no farther from 0."""
    for most in SAFE:
        if leaving_64_bits(function, typing, {}, dict.fromkeys(integers, (-most, most))) is None:
            return most
    return -1
