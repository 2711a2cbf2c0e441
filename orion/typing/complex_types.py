"""Rules for the types of complex numbers, and what is not done with them."""

from __future__ import annotations

from orion.ir.printer import print_expr
from orion.typing.arguments import Arguments
from orion.typing.dtypes import Kind
from orion.typing.problems import TypeProblem
from orion.typing.results import NOT_BY_NUMBA
from orion.typing.rewritten import parts_of_complex
from orion.typing.value_type import COMPLEX, INT, ValueType, shaped

MOST_PRODUCTS = 64
"""Powers of complex numbers by larger constants are not compiled as products."""


def part_of_complex(given: Arguments) -> ValueType:
    """`z.real` and `z.imag`."""
    is_real = not given.call.function.endswith("imag")
    kind = no_truth(given, "leave it out" if is_real else "write `0`", leaves_value=is_real)
    if not kind.is_complex:
        return kind
    return shaped(Kind("float32" if kind.dtype == "complex64" else "float64", kind.weak), kind)


def conjugated(given: Arguments) -> ValueType:
    """`z.conjugate()`."""
    return no_truth(given)


def no_truth(given: Arguments, hint: str = "leave it out", *, leaves_value: bool = False) -> ValueType:
    """The type of a number, or numbers; TypeProblem for truth values, which may stay as they are."""
    kind = given.type(0)
    if kind.dtype == "bool":
        name = given.call.function.lstrip(".").removeprefix("attribute:")
        text = print_expr(given.call.arguments[0]) if leaves_value else None
        raise TypeProblem(f"`{name}` of a truth value", NOT_BY_NUMBA, hint, replaced_by=text)
    return kind


def complex_number(given: Arguments) -> ValueType:
    """`complex(x, y)`."""
    if any(kind.rank for kind in given.types):
        raise TypeProblem("`complex` of an array", "it takes numbers", "write `x + 1j * y`")
    if len(given.types) == 2 and any(kind.is_complex for kind in given.types):
        what, text = "`complex` of two numbers of which one is complex", parts_of_complex(given.call, given.types)
        raise TypeProblem(what, NOT_BY_NUMBA, "write `x + 1j * y`", replaced_by=text)
    return COMPLEX


def check_complex_power(power: ValueType, value: int | None) -> None:
    """TypeProblem for a power of a complex number by other than a small integer that is known."""
    if power != INT or value is None or not 0 <= value <= MOST_PRODUCTS:
        what = "a power with complex numbers, other than of one by a constant integer, 0 or more,"
        hint = "write products, `z * z`, `np.sqrt(z)` for `z**0.5`, or `np.exp(p * np.log(z))`"
        raise TypeProblem(f"{what} is not supported", "", hint, is_for_numba=True)


def check_complex(
    name: str, given: tuple[ValueType, ...], found: ValueType, *, of_complex: bool, converts: bool
) -> None:
    """TypeProblem where a function is not known to be NumPy's for complex numbers, or would take their real parts."""
    is_given = any(part.is_complex for kind in given for part in (kind, *kind.items))
    if is_given and converts and not found.is_complex:
        raise TypeProblem(f"a complex number becomes {found.dtype}", "", "write `z.real`, or `abs(z)`")
    if (is_given or found.is_complex) and not of_complex:
        what = f"`{name.removeprefix('.')}` of complex numbers is not supported"
        raise TypeProblem(what, "", "use their parts, `z.real` and `z.imag`", is_for_numba=True)
