"""The tree of a function's loops as an HTML table: what stands for one line is in folds."""

from __future__ import annotations

import re
from html import escape

from orion.inspect.html.style import STYLE
from orion.inspect.text.words import percent, time_in_words
from orion.inspect.tree.text import totals
from orion.inspect.tree.view import Tree, TreeLine


def tree_html(tree: Tree) -> str:
    """Return the tree of a run as a piece of HTML."""
    title = f"<p><code>{escape(tree.function)}</code>: {_prose(tree.verdict + totals(tree))}</p>"
    return f'<div class="orion-plan"><style>{STYLE}</style>{title}{tree_table(tree)}</div>'


def tree_table(tree: Tree) -> str:
    """Return the tree as a table; nothing of a function without a loop."""
    shown, left = tree.shown()
    if not shown:
        return ""
    has_predicted = any(line.predicted is not None for line in shown)
    has_measured = any(line.measured is not None for line in shown)
    heads = ["line", "loop", "how", "share", *["predicted"] * has_predicted, *["measured"] * has_measured]
    rows = "".join(_row(line, has_predicted, has_measured) for line in shown)
    head = "".join(f"<th>{name}</th>" for name in heads)
    more = f'<p class="o-faint">… and {left:,} more</p>' if left else ""
    return (
        f'<div class="o-scroll"><table class="o-tree"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f"{more}"
    )


def _row(line: TreeLine, has_predicted: bool, has_measured: bool) -> str:
    text = f'<code style="padding-left:{2 * line.depth}ch">{escape(line.text)}</code>'
    cells = [text, _how(line), "" if line.share is None else escape(percent(line.share))]
    cells += [_time(line.predicted)] * has_predicted + [_time(line.measured)] * has_measured
    return f'<tr><td class="o-number">{line.line}</td>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _how(line: TreeLine) -> str:
    """How a loop runs; of several planned loops each in a fold."""
    kind = next((name for start, name in KINDS.items() if line.how.startswith(start)), "")
    words = _prose(line.how)
    if kind:
        words = f'<span class="o-badge {kind}">{words}</span>'
    if not line.parts:
        return words
    items = "".join(f"<li>{_prose(part)}</li>" for part in line.parts)
    return f"<details><summary>{words}</summary><ul>{items}</ul></details>"


KINDS = {"parallel": "o-parallel", "partly": "o-partly", "serial": "o-serial"}
"""The class of what begins with these words."""


def _time(seconds: float | None) -> str:
    return "" if seconds is None else escape(time_in_words(seconds * 1e9))


def _prose(words: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(words))
