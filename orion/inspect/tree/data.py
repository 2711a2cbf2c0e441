"""The tree of a function's loops as plain data."""

from __future__ import annotations

from typing import Any

from orion.inspect.tree.view import Tree, TreeLine


def tree_to_dict(tree: Tree) -> dict[str, Any]:
    """Return the whole tree: its verdict, the seconds of the call, and all lines."""
    return {
        "verdict": tree.verdict, "predicted": tree.predicted, "measured": tree.measured,
        "unpredicted": tree.unpredicted,
        "lines": [_line(line) for line in tree.lines],
        "options": [{"option": one.option, "line": one.line, "how": one.how} for one in tree.options],
    }  # fmt: skip


def _line(line: TreeLine) -> dict[str, Any]:
    return {
        "line": line.line, "depth": line.depth, "text": line.text, "how": line.how, "parts": list(line.parts),
        "share": None if line.share is None else round(line.share, 4),
        "predicted": line.predicted, "measured": line.measured,
    }  # fmt: skip
