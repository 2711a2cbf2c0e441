"""Dependences as a graph of statements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orion.dependence.access import Dependence
from orion.ir.nodes import Stmt, Walked, walk
from orion.source import Span

if TYPE_CHECKING:
    import networkx as nx


def dependence_graph(dependences: Iterable[Dependence], body: Iterable[Stmt] = ()) -> nx.MultiDiGraph:
    """A graph of the statements of the source that access arrays, with one edge per dependence.

    `body` are the statements of the function. Nodes are "line:column" of a statement, or of the test or range of one
    that holds others; their attributes are `span`, `line`, and `text`, the accesses that conflict as they are
    written, a tuple. Edges have `array`, `kind`, `distance`, `direction` and the `dependence` itself. An access that
    stands in none of the statements is a node of its own.
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    spans = [node.span for statement in body for node in walk(statement) if isinstance(node, Walked)]
    for dependence in dependences:
        ends = []
        for access in (dependence.source, dependence.sink):
            span = _innermost(access.span, spans)
            ends.append(f"{span.line}:{span.column}")
            texts = graph.nodes[ends[-1]]["text"] if ends[-1] in graph else ()
            graph.add_node(ends[-1], span=span, line=span.line, text=tuple(dict.fromkeys((*texts, access.text))))
        graph.add_edge(
            *ends,
            array=dependence.array,
            kind=dependence.kind,
            distance=dependence.distance,
            direction=dependence.direction,
            dependence=dependence,
        )
    return graph


def _innermost(place: Span, statements: Iterable[Span]) -> Span:
    """The shortest of the statements that a place lies in; the place itself where it lies in none."""
    here = [span for span in statements if span.file == place.file]
    around = [span for span in here if _start(span) <= _start(place) and _end(place) <= _end(span)]
    return min(around, key=lambda span: (span.end_line - span.line, _end(span), _start(span)), default=place)


def _start(span: Span) -> tuple[int, int]:
    return span.line, span.column


def _end(span: Span) -> tuple[int, int]:
    return span.end_line, span.end_column
