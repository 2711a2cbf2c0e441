"""Dependences as a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orion.dependence.access import Dependence
from orion.loop.source import Span

if TYPE_CHECKING:
    import networkx as nx


def dependence_graph(dependences: Iterable[Dependence]) -> nx.MultiDiGraph:
    """A graph of the places in the source that access arrays, with one edge per dependence.

    Nodes are "line:column", with attributes `span` and `text`; edges have `array`, `kind`, `distance`, `direction`
    and the `dependence` itself.
    """
    import networkx as nx

    graph = nx.MultiDiGraph()
    for dependence in dependences:
        for access in (dependence.source, dependence.sink):
            graph.add_node(_place(access.span), span=access.span, text=access.text)
        graph.add_edge(
            _place(dependence.source.span),
            _place(dependence.sink.span),
            array=dependence.array,
            kind=dependence.kind,
            distance=dependence.distance,
            direction=dependence.direction,
            dependence=dependence,
        )
    return graph


def _place(span: Span) -> str:
    return f"{span.line}:{span.column}"
