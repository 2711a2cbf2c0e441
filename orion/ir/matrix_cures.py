"""What to write instead of what loops cannot do with SciPy's sparse matrices: loops over the arrays that hold them."""

from __future__ import annotations

from orion.dataclass import dataclass

LOOPS = {
    "csr": "its rows by `for p in range({0}.indptr[i], {0}.indptr[i + 1]):`, with column `{0}.indices[p]` and value",
    "csc": "its columns by `for p in range({0}.indptr[j], {0}.indptr[j + 1]):`, with row `{0}.indices[p]` and value",
    "coo": "its elements by `for p in range({0}.nnz):`, with row `{0}.row[p]`, column `{0}.col[p]` and value",
}
"""What a loop goes through, by the format of the matrix."""


@dataclass(frozen=True, slots=True)
class Stored:
    """How a function stores elements of a matrix one by one: the arrays that have their rows, columns and values, where
    it goes through all of these and nothing else, and whether each is added to what is there."""

    arrays: tuple[str, str, str] | None
    is_added: bool


def loop_over(name: str, kind: str) -> str:
    """The loop over a matrix of one of the formats of `LOOPS`.

    >>> loop_over("A", "csr")[:64]
    'go through its rows by `for p in range(A.indptr[i], A.indptr[i +'
    """
    return f"go through {LOOPS[kind].format(name)} `{name}.data[p]`"


def converted(name: str, kind: str) -> str:
    """The same for a matrix of any format, which is to be converted."""
    return f"{_convert(name, f'to{kind}')}, and {loop_over(name, kind)}"


def _convert(name: str, method: str) -> str:
    return f"write `{name} = {name}.{method}()`, once before the call"


def of_matrix(name: str, kind: str, *, is_iterated: bool, stored: Stored | None) -> str:
    """What to write where a function uses a matrix of a format otherwise than by its arrays. `is_iterated`: it goes
    through it as through a sparse array of Orion's."""
    as_ours = f"pass `orion.from_scipy({name})`, made once, before the loops that use it"
    if is_iterated:
        return as_ours
    if stored is not None:
        return _assembled(name, stored)
    loop = loop_over(name, kind) if kind in LOOPS else converted(name, "csr")
    return f"{loop}; {_whole(name)}"


def _assembled(name: str, stored: Stored) -> str:
    """What to write where elements are stored one by one: few formats have a place for a new one."""
    rows, columns, values = stored.arrays or ("rows", "columns", "values")
    made = f"scipy.sparse.coo_matrix(({values}, ({rows}, {columns})), shape={name}.shape)"
    made = f"({name} + {made}).tocsr()" if stored.is_added else f"{made}.tocsr()"
    if stored.arrays is not None:
        return f"`{name} = {made}` does it without a loop, and adds up what belongs to one place"
    given = ", ".join(f"`{array}[k]`" for array in (rows, columns, values))
    after = f"after the call, `{name} = {made}` adds up what belongs to one place"
    return f"write the row, column and value of each into arrays, {given}; {after}"


# ---------------------------------------------------------------- attributes that matrices have and arrays have not

IN_COO = "nonzero items keys values"
"""Those that go through all elements."""


def of_attribute(name: str, attribute: str) -> str:
    """What to write for an attribute of a matrix that is none of its arrays."""
    if attribute == "nonzero":
        zeros = f"(and `{name}.eliminate_zeros()` where it may have stored zeros)"
        return f"{_convert(name, 'tocoo')} {zeros}, and go through it by `for i, j in zip({name}.row, {name}.col):`"
    if attribute in ("toarray", "todense"):
        return f"{_convert(name, 'toarray')}, and leave `{name}.{attribute}()` out"
    kind = "coo" if attribute in IN_COO.split() else "csc" if attribute == "getcol" else "csr"
    return f"{converted(name, kind)}; {_whole(name)}"


def _whole(name: str) -> str:
    return f"compute what needs all of `{name}`, such as `{name} @ x`, before the call"
