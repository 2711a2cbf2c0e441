"""A part of a statement as a statement before it, and a choice as two branches: what hints tell to write instead.

    out[i] = f(i) in (1, 2)                 value = f(i)
                                            out[i] = value in (1, 2)
    out[i] = x[x > 2].sum() if c else 0     if c:
                                                out[i] = x[x > 2].sum()
                                            else:
                                                out[i] = 0

A part that the statement evaluates always, once and before all that could change it does the same there. Statements are
taken as the source has them; one on several lines stays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from orion.dataclass import dataclass
from orion.source import Replacement, SourceText, Span

MODULES = frozenset({"np", "numpy", "math"})
"""Modules whose functions have no effect but their result, where none is given by `out`."""

FUNCTIONS = frozenset(
    [
        "abs",
        "all",
        "any",
        "bool",
        "complex",
        "divmod",
        "enumerate",
        "float",
        "int",
        "isinstance",
        "len",
        "list",
        "max",
        "min",
        "pow",
        "range",
        "reversed",
        "round",
        "sorted",
        "str",
        "sum",
        "tuple",
        "zip",
    ]
)
METHODS = frozenset(
    [
        "all",
        "any",
        "argmax",
        "argmin",
        "argsort",
        "astype",
        "conj",
        "conjugate",
        "copy",
        "cumsum",
        "dot",
        "flatten",
        "item",
        "max",
        "mean",
        "min",
        "prod",
        "ravel",
        "reshape",
        "std",
        "sum",
        "tolist",
        "transpose",
        "var",
    ]
)
"""Python's functions, and methods of arrays, that have no other effect."""

WRITES = frozenset(["copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"])
"""Functions of NumPy's that write to what they are given."""

STEP = "    "
"""How much deeper a block is in the text of a replacement."""


@dataclass(frozen=True, slots=True)
class Place:
    """A node of a function's source: the nodes from its statement on, and the line that it stands on."""

    function: ast.AST
    path: tuple[ast.AST, ...]
    line: str
    span: Span

    @property
    def statement(self) -> ast.stmt:
        found = self.path[0]
        assert isinstance(found, ast.stmt)
        return found

    @property
    def node(self) -> ast.expr:
        found = self.path[-1]
        assert isinstance(found, ast.expr)
        return found

    @property
    def head(self) -> tuple[int, int] | None:
        """The columns, in bytes, of the statement, or of what it begins with up to the colon; None where it has more
        lines, or another statement before it."""
        statement = self.statement
        start, line = statement.col_offset, self.line.encode()
        if line[:start].strip():
            return None
        if isinstance(statement, ast.For | ast.If):
            last = statement.test if isinstance(statement, ast.If) else statement.iter
            colon = line.find(b":", last.end_col_offset or 0)
            is_one = last.end_lineno == statement.lineno < statement.body[0].lineno
            is_if = not line[start:].startswith(b"elif")
            return (start, colon + 1) if is_one and is_if and colon >= 0 else None
        return (start, statement.end_col_offset or 0) if statement.lineno == statement.end_lineno else None

    def replaced(self, text: str) -> Replacement | None:
        """The statement, or what it begins with, as another text."""
        if self.head is None:
            return None
        start, end = (len(self.line.encode()[:column].decode()) for column in self.head)
        return Replacement(Span(self.span.file, self.span.line, start, self.span.line, end), text)


def put_before(span: Span, source: SourceText, before: str, text: str) -> Replacement | None:
    """Statements before the one that has an expression there, which is another text in it then; None where that may
    mean something else."""
    place = place_of(span, source)
    if place is None or place.head is None or not _is_first(place.path):
        return None
    start, end = place.head
    node, line = place.node, place.line.encode()
    first, last = _with_parentheses(line, node) if text.isidentifier() else (node.col_offset, node.end_col_offset)
    head = line[start:first] + text.encode() + line[last:end]
    return place.replaced(f"{before}\n{head.decode()}")


def as_branches(span: Span, source: SourceText) -> Replacement | None:
    """The statement that has a choice there, or an expression in a branch of one, with a branch of its own for each;
    None where it has none, or that may mean something else."""
    place = place_of(span, source)
    if place is None or place.head is None or not isinstance(place.statement, SIMPLE):
        return None
    chosen = [number for number, node in enumerate(place.path) if isinstance(node, ast.IfExp)]
    if not chosen:
        return None
    path = place.path[: chosen[0] + 1]
    choice = path[-1]
    assert isinstance(choice, ast.IfExp)
    if choice.test in place.path or not _is_first(path, choice.test):
        return None
    (start, end), line = place.head, place.line.encode()
    first, last = _with_parentheses(line, choice)
    whole = isinstance(path[-2], ast.stmt)

    def branch(value: ast.expr) -> str:
        text = line[value.col_offset : value.end_col_offset]
        part = text if whole or isinstance(value, ATOMS) else b"(" + text + b")"
        return (line[start:first] + part + line[last:end]).decode()

    test = line[choice.test.col_offset : choice.test.end_col_offset].decode()
    text = f"if {test}:\n{STEP}{branch(choice.body)}\nelse:\n{STEP}{branch(choice.orelse)}"
    return place.replaced(text)


SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)
ATOMS = ast.Name | ast.Constant | ast.Call | ast.Subscript | ast.Attribute


def _with_parentheses(line: bytes, node: ast.expr) -> tuple[int, int]:
    """The columns of an expression with the parentheses around it, if they are around it alone."""
    first, last = node.col_offset, node.end_col_offset or 0
    before, after = line[:first].rstrip(), line[last:].lstrip()
    is_call = before[:-1].rstrip()[-1:].isalnum() or before[:-1].rstrip()[-1:] in (b"_", b")", b"]")
    if before.endswith(b"(") and after.startswith(b")") and not is_call:
        return len(before) - 1, len(line) - len(after) + 1
    return first, last


def place_of(span: Span, source: SourceText) -> Place | None:
    """The node of the source that has a span, on one line."""
    texts = (text for text in (source, *source.others) if text.file == span.file and text.line(span.line))
    text = next(texts, None)
    if text is None or span.inlined or span.line != span.end_line:
        return None
    line = text.line(span.line)
    lineno = span.line - text.first_line + 2
    first, last = (len(line[:column].encode()) for column in (span.column, span.end_column))
    try:
        tree = ast.parse("\n".join(["if 1:", *_indented(text.lines)]))
    except (SyntaxError, ValueError):
        return None
    shift = 0 if text.lines[0][:1].isspace() else len(STEP)
    for path in _paths(tree, ()):
        node = path[-1]
        if not isinstance(node, ast.expr) or not isinstance(path[0], ast.stmt):
            continue
        where = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
        if where == (lineno, first + shift, lineno, last + shift):
            _shift(path[0], shift)
            functions = (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef))
            return Place(next(functions, tree), path, line, span)
    return None


def _indented(lines: tuple[str, ...]) -> list[str]:
    return list(lines) if lines[0][:1].isspace() else [f"{STEP}{line}" for line in lines]


def _shift(statement: ast.AST, shift: int) -> None:
    """Give the nodes of a statement the columns that they have in the source."""
    for node in ast.walk(statement):
        if isinstance(node, ast.expr | ast.stmt):
            node.col_offset -= shift
            node.end_col_offset = (node.end_col_offset or shift) - shift


def _paths(node: ast.AST, above: tuple[ast.AST, ...]) -> Iterator[tuple[ast.AST, ...]]:
    """All nodes, each with those from its statement on."""
    path = (node,) if isinstance(node, ast.stmt) else (*above, node)
    yield path
    for child in ast.iter_child_nodes(node):
        yield from _paths(child, path)


# ---------------------------------------------------------------- what is evaluated before


def _is_first(path: tuple[ast.AST, ...], last: ast.expr | None = None) -> bool:
    """Whether the last of these nodes, or one below it, could as well be evaluated before the statement."""
    node = path[-1] if last is None else last
    before: list[ast.AST] = []
    for above, below in zip(path, [*path[1:], *([] if last is None else [last])], strict=False):
        for child, is_sure in _evaluated(above):
            if child is below:
                if not is_sure:
                    return False
                break
            before.append(child)
        else:
            return False
    if not has_effects(node):
        return not any(map(has_effects, before))
    parts = [part for one in before for part in ast.walk(one)]
    given = {part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr)}
    is_read = any(isinstance(part, ast.Name) and part.id in given for part in parts)
    reads = ast.Call | ast.Subscript | ast.Attribute | ast.NamedExpr
    return not (is_read or any(isinstance(part, reads) for part in parts))


def _evaluated(node: ast.AST) -> list[tuple[ast.AST, bool]]:
    """What a node evaluates, in its order, and whether it always does, once."""
    match node:
        case ast.BoolOp(_, values):
            return [(value, not number) for number, value in enumerate(values)]
        case ast.IfExp(test, body, orelse):
            return [(test, True), (body, False), (orelse, False)]
        case ast.Compare(left, _, comparators):
            return [(value, number < 2) for number, value in enumerate([left, *comparators])]
        case ast.Assign(targets, value):
            return [(value, True), *((target, True) for target in targets)]
        case ast.AugAssign(target, _, value):
            return [(target, True), (value, True)]
        case ast.For(_, space):
            return [(space, True)]
        case ast.If(test) | ast.Assert(test):
            return [(test, True)]
        case ast.Expr(value) | ast.Return(value) if value is not None:
            return [(value, True)]
        case ast.stmt() | ast.Lambda() | ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
            return []
        case _:
            children = ast.iter_child_nodes(node)
            return [(child, True) for child in children if isinstance(child, ast.expr | ast.keyword | ast.Slice)]


def has_effects(node: ast.AST) -> bool:
    """Whether to evaluate it may change something: it calls a function that is not known to leave all as it is, or
    assigns a name."""
    return any(
        isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom)
        or (isinstance(part, ast.Call) and not _is_pure(part))
        for part in ast.walk(node)
    )


def _is_pure(call: ast.Call) -> bool:
    if any(keyword.arg in (None, "out") for keyword in call.keywords):
        return False
    match call.func:
        case ast.Attribute(value, name) if _root(value) in MODULES:
            return name not in WRITES and "random" not in ast.unparse(value)
        case ast.Attribute(_, name):
            return name in METHODS
        case ast.Name(name):
            return name in FUNCTIONS
        case _:
            return False


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
