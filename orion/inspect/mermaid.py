"""The dependence graph as Mermaid text, which GitHub, GitLab and most notebooks draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orion.ir.function import Function, in_users_words

if TYPE_CHECKING:
    import networkx as nx


def mermaid_text(graph: nx.MultiDiGraph, function: Function) -> str:
    """Return a flowchart: a node for each statement, with its line and text, and an arrow for each dependence, from the
    earlier access to the later one, with the array, the kind and the distance in each loop."""
    places = sorted(graph.nodes, key=lambda node: graph.nodes[node]["span"])
    numbers = {node: f"s{number}" for number, node in enumerate(places)}
    nodes = []
    for node in places:
        line = graph.nodes[node]["line"]
        text = function.source.line(line).strip() or ", ".join(graph.nodes[node]["text"])
        nodes.append(f'    {numbers[node]}["{_quoted(f"{line}: {text}")}"]')
    arrows = []
    for start, end, edge in graph.edges(data=True):
        words = f"{edge['array']}: {edge['kind']} {_distance(edge['distance'], edge['direction'])}"
        said = _quoted(in_users_words(words, function))
        arrows.append((places.index(start), places.index(end), f'    {numbers[start]} -->|"{said}"| {numbers[end]}'))
    texts = [text for _, _, text in sorted(arrows)]
    return "\n".join(["flowchart TD", *nodes, *dict.fromkeys(texts)])


def _distance(distance: tuple[int | None, ...], direction: tuple[str, ...]) -> str:
    """The difference of two iterations in each loop: its sign where it is not the same for all pairs.

    >>> _distance((1, None), ("<", "*"))
    '(1, *)'
    """
    steps = (sign if step is None else str(step) for step, sign in zip(distance, direction, strict=True))
    return f"({', '.join(steps)})"


def _quoted(text: str) -> str:
    """Text as a label: quotes and what Mermaid takes as markup are entities.

    >>> _quoted('a["x"] < 1')
    'a[#quot;x#quot;] #lt; 1'
    """
    return text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
