"""What loops do with SciPy's matrices by attributes that arrays have not: refused, with the loop to write instead."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from orion.frontend.locate import Located, span_of
from orion.frontend.matrices import OWN, Matrix, is_foreign
from orion.ir.matrix_cures import of_attribute
from orion.ir.refuse import unsupported


def refuse_attributes(located: Located, matrices: Mapping[str, Matrix]) -> None:
    """UnsupportedLoopError for the first such attribute of the parameters that are SciPy's matrices."""
    for node in ast.walk(located.definition) if matrices else ():
        match node:
            case ast.Attribute(ast.Name(name), attribute) if (
                name in matrices and matrices[name].is_scipys and is_foreign(attribute)
            ):
                what = f"`{name}.{attribute}` is not supported, and `{name}` is one of SciPy's sparse matrices"
                why = f"of these {', '.join(f'`{one}`' for one in OWN)} are known"
                span, hint = span_of(node, located.source), of_attribute(name, attribute)
                raise unsupported(what, span, located.source, why=why, hint=hint)
