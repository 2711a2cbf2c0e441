"""Sparse matrices among the arguments, written as the arrays that hold them, before the source is read.

| in the source | becomes |
|---|---|
| `A.indptr[i]`, `A.indices[p]`, `A.data[p]`, `A.row`, `A.col` of a SciPy matrix | `A_indptr[i]`, … |
| `A.shape[0]`, `n, m = A.shape`, `A.nnz` of one, or of one that is gone through by rows | `A_shape_0`, … |
| `for j, v in R[i]:` of a sparse array | a `for` over the places of the row's elements |
| `for i, v in R[:, j]:` | the same of a column |
| `len(R[i])` | how many places that are |

These are parameters of their own: arrays and integers, which each call takes from the matrix
(`orion.arrays.compressed`). What else a matrix is used for stays as it is.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from orion.dataclass import dataclass, field
from orion.frontend.syntax import nodes_of
from orion.ir.function import MatrixPart
from orion.ir.renaming import fresh
from orion.typing.functions import known


@dataclass(frozen=True, slots=True)
class Matrix:
    """A parameter that is a sparse matrix: one of SciPy's, or a sparse array of so many dimensions."""

    is_scipys: bool
    ndim: int


OF_ARRAYS = frozenset({"shape", "size", "nnz", "ndim", "dtype", "T", "real", "imag"})
"""The attributes of arrays that loops may use, besides methods."""

ARRAYS = ("indptr", "indices", "data", "row", "col")
"""The attributes of SciPy's matrices that are arrays."""

OWN = (*ARRAYS, "shape", "nnz")
"""Those that loops may use."""


def is_foreign(attribute: str) -> bool:
    """Whether an attribute is none of SciPy's matrices that loops may use, and none of arrays."""
    return attribute not in (*OWN, *OF_ARRAYS) and known(f".{attribute}") is None


def candidates(definition: ast.FunctionDef) -> frozenset[str]:
    """The parameters that may be sparse matrices, by what is done with them: dense arrays have a shape, too."""
    params = {one.arg for one in ast.walk(definition.args) if isinstance(one, ast.arg)}
    found = set()
    for node in nodes_of(definition):
        match node:
            case ast.Attribute(ast.Name(name), attribute) if attribute in OWN or is_foreign(attribute):
                found.add(name)
            case ast.Call(ast.Name("len"), [ast.Subscript(ast.Name(name), index)], []) if _line_of(index):
                found.add(name)
            case ast.For(target, ast.Subscript(ast.Name(name), index)) if _is_pair(target) and _line_of(index):
                found.add(name)
    return frozenset(found & params)


def _is_pair(target: ast.expr) -> bool:
    """Whether it takes a key and a value, or a tuple of values."""
    match target:
        case ast.Tuple([ast.Name(), ast.Name()]):
            return True
        case ast.Tuple([ast.Name(), ast.Tuple(values)]):
            return all(isinstance(value, ast.Name) for value in values)
        case _:
            return False


def _line_of(index: ast.expr) -> tuple[str, ast.expr] | None:
    """What `R[i]` and `R[:, j]` go through, with the number of it: None for other subscripts."""
    match index:
        case ast.Tuple([ast.Slice(None, None, None), number]) if not isinstance(number, ast.Slice):
            return "columns", number
        case ast.Slice() | ast.Tuple():
            return None
        case _:
            return "rows", index


def write_out_matrices(
    definition: ast.FunctionDef, matrices: Mapping[str, Matrix], taken: Collection[str]
) -> tuple[MatrixPart, ...]:
    """Write matrices, in the source of a function, as the arrays that hold them, and say which these are. `matrices`
    are those among the parameters, `taken` names that are no others'."""
    if not matrices:
        return ()
    names = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    writer = _Writer(
        matrices, {*names, *taken, *(one.arg for one in ast.walk(definition.args) if isinstance(one, ast.arg))}
    )
    definition.body = [writer.visit(statement) for statement in definition.body]
    ast.fix_missing_locations(definition)
    return tuple(writer.parts.values())


@dataclass
class _Writer(ast.NodeTransformer):
    """`from_zero` are the variables of ranges around a node that begin at a number from 0 on, and are given no other
    value there."""

    matrices: Mapping[str, Matrix]
    taken: set[str]
    parts: dict[tuple[str, str], MatrixPart] = field(default_factory=dict)
    from_zero: list[str] = field(default_factory=list)

    def part(self, matrix: str, attribute: str, node: ast.AST) -> ast.Name:
        """The name of what a matrix has, in the place of a node."""
        key = matrix, attribute
        if key not in self.parts:
            self.parts[key] = MatrixPart(fresh(f"{matrix}_{attribute}", self.taken), matrix, attribute)
        return ast.copy_location(ast.Name(self.parts[key].name, ast.Load()), node)

    # ------------------------------------------------------------ attributes

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign:
        """`A.data *= 2` changes the array; any other assignment to an attribute would change the matrix, and is
        refused as one."""
        match node.target:
            case ast.Attribute(ast.Name(name), attribute) if self._has(name, attribute) and attribute in ARRAYS:
                node.target = self.part(name, attribute, node.target)
        self.generic_visit(node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                return node
            case ast.Attribute(ast.Name(name), "shape") if name in self.matrices:
                sides = [self.part(name, f"shape_{axis}", node) for axis in range(self.matrices[name].ndim)]
                return ast.copy_location(ast.Tuple([*sides], ast.Load()), node)
            case ast.Attribute(ast.Name(name), attribute) if self._has(name, attribute):
                return self.part(name, attribute, node)
        self.generic_visit(node)
        return node

    def _has(self, name: str, attribute: str) -> bool:
        """Whether it is an attribute that a matrix has: those of arrays of Orion's are their own."""
        return name in self.matrices and (attribute == "nnz" or (attribute in ARRAYS and self.matrices[name].is_scipys))

    def _is_sparse(self, name: str) -> bool:
        """Whether it is an array of Orion's."""
        found = self.matrices.get(name)
        return found is not None and not found.is_scipys

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(ast.Attribute(ast.Name(name), "shape"), ast.Constant(int(axis))) if (
                name in self.matrices and -self.matrices[name].ndim <= axis < self.matrices[name].ndim
            ):
                return self.part(name, f"shape_{axis % self.matrices[name].ndim}", node)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(ast.Name("len"), [ast.Name(name)], []) if self._is_sparse(name):
                return self.part(name, "nnz", node)
            case ast.Call(ast.Name("len"), [ast.Subscript(ast.Name(name), index)], []) if self._is_sparse(name):
                line = _line_of(index)
                if line is not None:
                    first, end = self._ends(name, *line, node)
                    return ast.copy_location(ast.BinOp(end, ast.Sub(), first), node)
        self.generic_visit(node)
        return node

    # ------------------------------------------------------------ rows and columns

    def visit_For(self, node: ast.For) -> ast.For:
        match node:
            case ast.For(target, ast.Subscript(ast.Name(name), index)) if self._is_sparse(name) and _is_pair(target):
                line = _line_of(index)
                if line is not None:
                    return self._over(node, name, *line)
            case ast.For(ast.Name(variable), ast.Call(ast.Name("range" | "prange"), bounds)) if _begins_at_zero(
                bounds
            ) and variable not in _stored(node.body):
                node.iter = self.visit(node.iter)
                self.from_zero.append(variable)
                node.body = [self.visit(statement) for statement in node.body]
                self.from_zero.pop()
                node.orelse = [self.visit(statement) for statement in node.orelse]
                return node
        self.generic_visit(node)
        return node

    def _over(self, node: ast.For, matrix: str, lines: str, number: ast.expr) -> ast.For:
        """The loop over the places of the elements of a row or a column."""
        assert isinstance(node.target, ast.Tuple)
        source = node.iter
        first, end = self._ends(matrix, lines, number, source)
        place = fresh(f"{matrix}_place", self.taken)
        key, value = node.target.elts

        def at(array: str, index: ast.expr) -> ast.expr:
            return ast.Subscript(self.part(matrix, f"{lines}_{array}", source), index, ast.Load())

        node.iter = ast.copy_location(ast.Call(ast.Name("range", ast.Load()), [first, end], []), source)
        names = [*value.elts] if isinstance(value, ast.Tuple) else [value]
        arrays = [f"data_{k}" for k in range(len(names))] if isinstance(value, ast.Tuple) else ["data"]
        given = [
            ast.Assign([target], at(array, ast.Name(place, ast.Load())))
            for target, array in zip((key, *names), ("indices", *arrays), strict=True)
        ]
        node.target = ast.Name(place, ast.Store())
        body = [self.visit(statement) for statement in node.body]
        node.body = [*given, *body]
        node.orelse = [self.visit(statement) for statement in node.orelse]
        for part in (*given, node.iter, node.target):
            _place_at(part, source)
        return node

    def _ends(self, matrix: str, lines: str, number: ast.expr, source: ast.AST) -> tuple[ast.expr, ast.expr]:
        """The places of the first element of a row or column, and past the last."""
        number = self._from_the_front(self.visit(number), matrix, lines)
        pointers = self.part(matrix, f"{lines}_indptr", source)
        after = ast.BinOp(number, ast.Add(), ast.Constant(1))
        found = ast.Subscript(pointers, number, ast.Load()), ast.Subscript(pointers, after, ast.Load())
        for one in found:
            _place_at(one, source)
        return found

    def _from_the_front(self, number: ast.expr, matrix: str, lines: str) -> ast.expr:
        """The number of a row or column that may count from the end as one that counts from the front: past the last
        where there is none."""
        match number:
            case ast.Name(name) if name in self.from_zero:
                return number
            case ast.Constant(int(value)) if value >= 0:
                return number
        length = self.part(matrix, f"shape_{0 if lines == 'rows' else 1}", number)
        from_end, past = ast.BinOp(number, ast.Add(), length), ast.BinOp(length, ast.Add(), ast.Constant(1))
        first = ast.IfExp(ast.Compare(from_end, [ast.GtE()], [ast.Constant(0)]), from_end, past)
        return ast.IfExp(ast.Compare(number, [ast.GtE()], [ast.Constant(0)]), number, first)


def _stored(body: list[ast.stmt]) -> set[str]:
    """The names that statements give a value, loops in them too."""
    nodes = (node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {node.id for node in nodes if not isinstance(node.ctx, ast.Load)}


def _begins_at_zero(bounds: list[ast.expr]) -> bool:
    """Whether a range with these arguments has no negative number: it goes up, and begins at one that is not."""
    match bounds:
        case [_] | [ast.Constant(int()), _]:
            return True
        case [ast.Constant(int()), _, ast.Constant(int(step))]:
            return step > 0
        case _:
            return False


def _place_at(made: ast.AST, source: ast.AST) -> None:
    """Give all that has no place yet in the source that of a part of it."""
    for node in _made(made):
        ast.copy_location(node, source)


def _made(node: ast.AST) -> Iterator[ast.AST]:
    for part in ast.walk(node):
        if isinstance(part, ast.expr | ast.stmt) and not hasattr(part, "lineno"):
            yield part
