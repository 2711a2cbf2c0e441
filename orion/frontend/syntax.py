"""Syntax trees of Python, gone through."""

from __future__ import annotations

import ast


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """Return a node and all below it in the order of `ast.walk`, which takes three times as long.

    >>> tree = ast.parse("x = f(y, *z)")
    >>> nodes_of(tree) == [*ast.walk(tree)]
    True
    """
    found = [tree]
    for node in found:  # which grows meanwhile
        for name in node._fields:
            value = getattr(node, name, None)
            if type(value) is list:
                found += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found
