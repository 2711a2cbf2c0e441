"""Row expressions as operations on vector registers: as written, or as a sum of rows times scalars where that is
less work.

In sums with `fastmath`, that is in `row += …` and `row -= …`, `W + step * (err * H - reg * W)` becomes
`(1 - step * reg) * W + (step * err) * H`: two operations per element instead of three. Products and sums are joined by
`fma`, explicitly: what is rounded once never depends on LLVM's choice. All else is done as written, each operation
rounded by itself.
"""

from __future__ import annotations

from orion.dataclass import dataclass
from orion.kernel.emit.code import SIGN, Code, call, infix, number


@dataclass(frozen=True, slots=True)
class Scalar:
    code: Code


@dataclass(frozen=True, slots=True)
class Leaf:
    """A row held in registers, by name."""

    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class Apply:
    """`function` is "+", "-", "*", "/", "neg", or the name of a function of rows."""

    function: str
    arguments: tuple[RowTerm, ...]


RowTerm = Scalar | Leaf | Apply


@dataclass(frozen=True, slots=True)
class Monomial:
    """A product of scalars with a sign."""

    sign: int
    factors: tuple[Code, ...]


Combination = dict[RowTerm | None, list[Monomial]]
"""A sum: row → the scalars that it is multiplied by. The key None is the part without a row."""


@dataclass(frozen=True, slots=True)
class Rendered:
    code: Code
    operations: int


def render(term: RowTerm, dtype: str, fastmath: bool) -> Rendered:
    """The source of a row expression of that dtype, and how many operations per element it takes."""
    written = _as_written(term, dtype, fastmath)
    if not fastmath or isinstance(term, Scalar | Leaf):
        return written
    terms = combination(term)
    if any(_cancels(row, monomials) for row, monomials in terms.items()):
        return written
    collected = _as_sum(terms, dtype)
    return collected if collected.operations < written.operations else written


# ------------------------------------------------------------ as written


def _as_written(term: RowTerm, dtype: str, fastmath: bool) -> Rendered:
    match term:
        case Scalar(code):
            return Rendered(code, 0)
        case Leaf(name, leaf_dtype):
            return Rendered(Code(name, leaf_dtype), 0)
        case Apply("neg", (operand,)):
            inner = render(operand, dtype, fastmath)
            return Rendered(Code(f"-{inner.code.at(SIGN)}", dtype, SIGN), inner.operations + 1)
        case Apply("+" | "-" as op, (left, right)) if fastmath and (_is_product(left) or _is_product(right)):
            return _fused(op, left, right, dtype)
        case Apply("+" | "-" | "*" | "/" as op, (left, right)):
            a, b = render(left, dtype, fastmath), render(right, dtype, fastmath)
            return Rendered(infix(op, a.code, b.code, dtype), a.operations + b.operations + 1)
        case Apply(function, arguments):
            parts = [render(argument, _source_dtype(function, dtype), fastmath) for argument in arguments]
            operations = sum(part.operations for part in parts)
            return Rendered(call(function, *(part.code for part in parts), dtype=dtype), operations + 1)


def _source_dtype(function: str, dtype: str) -> str:
    """The dtype of the argument of a conversion; for other functions that of their result."""
    return {"row_as_float32": "float64", "row_as_float64": "float32"}.get(function, dtype)


def _is_product(term: RowTerm) -> bool:
    return isinstance(term, Apply) and term.function == "*"


def _fused(op: str, left: RowTerm, right: RowTerm, dtype: str) -> Rendered:
    """`left op right` where one of them is a product, as one `fma`."""
    if _is_product(right):
        return _fma(right, op == "-", render(left, dtype, True), dtype)
    addend = render(right, dtype, True)
    if op == "-":
        addend = Rendered(_negated(addend.code), addend.operations)
    return _fma(left, False, addend, dtype)


def _fma(product: RowTerm, is_negative: bool, addend: Rendered, dtype: str) -> Rendered:
    """`addend` plus or minus a product; a scalar factor is the one to be negated."""
    assert isinstance(product, Apply)
    factors = sorted(product.arguments, key=lambda factor: not isinstance(factor, Scalar))
    a, b = (render(factor, dtype, True) for factor in factors)
    first = _negated(a.code) if is_negative else a.code
    code = call("fma", first, b.code, addend.code, dtype=dtype)
    return Rendered(code, a.operations + b.operations + addend.operations + 1)


def _negated(code: Code) -> Code:
    return Code(f"-{code.at(SIGN)}", code.dtype, SIGN)


# ------------------------------------------------------------ as a sum of rows times scalars


def combination(term: RowTerm) -> Combination:
    """The term as a sum of rows times scalars; what is not linear counts as a row."""
    match term:
        case Scalar(code):
            return {None: [Monomial(1, (code,))]}
        case Apply("neg", (operand,)):
            return _scaled(combination(operand), Monomial(-1, ()))
        case Apply("+" | "-" as op, (left, right)):
            right_part = _scaled(combination(right), Monomial(1 if op == "+" else -1, ()))
            return _merged(combination(left), right_part)
        case Apply("*", (Scalar(code), row)) | Apply("*", (row, Scalar(code))):
            return _scaled(combination(row), Monomial(1, (code,)))
        case _:
            return {term: [Monomial(1, ())]}


def _scaled(terms: Combination, factor: Monomial) -> Combination:
    return {
        row: [Monomial(m.sign * factor.sign, (*factor.factors, *m.factors)) for m in monomials]
        for row, monomials in terms.items()
    }


def _merged(left: Combination, right: Combination) -> Combination:
    return {row: left.get(row, []) + right.get(row, []) for row in {**left, **right}}


def _cancels(row: RowTerm | None, monomials: list[Monomial]) -> bool:
    """Whether adding the monomials ahead would lose what the rounding of the terms as written gives.

    `(W + b) - b` is not `W` where b is large: a sum may be reassociated, terms in it may not be taken away.
    """
    if row is None:
        return len(monomials) > 1
    factors = {sign: [sorted(f.text for f in m.factors) for m in monomials if m.sign == sign] for sign in (1, -1)}
    return any(positive in factors[-1] for positive in factors[1])


def _as_sum(terms: Combination, dtype: str) -> Rendered:
    """The sum, begun with what costs least: a row alone, then the part without a row, then a product; the rest by
    `fma`."""
    rest = dict(terms)
    start = _starting_row(rest)
    sum_so_far = _term(start, rest.pop(start), dtype)
    for row, monomials in rest.items():
        sum_so_far = _plus(sum_so_far, row, monomials, dtype)
    return sum_so_far


def _starting_row(terms: Combination) -> RowTerm | None:
    alone = [row for row, monomials in terms.items() if row is not None and monomials == [Monomial(1, ())]]
    leaves = [row for row in alone if not _is_product(row)]
    if leaves:
        return leaves[0]
    return None if None in terms else next(iter(terms))


def _term(row: RowTerm | None, monomials: list[Monomial], dtype: str) -> Rendered:
    if row is None:
        return Rendered(coefficient(monomials, dtype), 0)
    value = _as_written(row, dtype, True)
    if monomials == [Monomial(1, ())]:
        return value
    return Rendered(infix("*", coefficient(monomials, dtype), value.code, dtype), value.operations + 1)


def _plus(total: Rendered, row: RowTerm | None, monomials: list[Monomial], dtype: str) -> Rendered:
    if row is None:
        return Rendered(infix("+", total.code, coefficient(monomials, dtype), dtype), total.operations + 1)
    sign = monomials[0].sign if len(monomials) == 1 and not monomials[0].factors else 0
    if sign and _is_product(row):
        return _fma(row, sign < 0, total, dtype)
    value = _as_written(row, dtype, True)
    operations = total.operations + value.operations + 1
    if sign:
        return Rendered(infix("+" if sign > 0 else "-", total.code, value.code, dtype), operations)
    return Rendered(call("fma", coefficient(monomials, dtype), value.code, total.code, dtype=dtype), operations)


def coefficient(monomials: list[Monomial], dtype: str) -> Code:
    """The sum of the monomials, positive ones first.

    >>> step, reg = Code("step", "float32"), Code("reg", "float32")
    >>> coefficient([Monomial(1, ()), Monomial(-1, (step, reg))], "float32").text
    'float32(1.0) - step * reg'
    """
    ordered = sorted(monomials, key=lambda monomial: -monomial.sign)
    total = _product(ordered[0].factors, dtype)
    if ordered[0].sign < 0:
        total = _negated(total)
    for monomial in ordered[1:]:
        total = infix("+" if monomial.sign > 0 else "-", total, _product(monomial.factors, dtype), dtype)
    return total


def _product(factors: tuple[Code, ...], dtype: str) -> Code:
    if not factors:
        return number(1, dtype)
    product = factors[0]
    for factor in factors[1:]:
        product = infix("*", product, factor, dtype)
    return product
