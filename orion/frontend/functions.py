"""What a function that a loop calls is named in the loop language."""

from __future__ import annotations

import math
from types import BuiltinFunctionType

import numpy as np

from orion.keyed_random import KEYED

ALIASES = {"absolute": "abs", "amax": "max", "amin": "min", "conjugate": "conj"}
"""NumPy's own name of a function → the name that a loop is printed with."""


def canonical_name(function: object) -> str | None:
    """How a function from Python, `math`, NumPy or Orion is called in the loop language; None for any other object.

    >>> canonical_name(np.absolute), canonical_name(math.exp), canonical_name(len), canonical_name(np.linalg.norm)
    ('np.abs', 'math.exp', 'len', 'np.linalg.norm')
    """
    for keyed, own in KEYED:
        if function is own:
            return keyed
    name = getattr(function, "__name__", "")
    if not name or not callable(function):
        return None
    module = getattr(function, "__module__", None)
    if isinstance(function, type | BuiltinFunctionType) and module == "builtins":
        return str(name)
    if vars(np).get(name) is function:
        return "np." + ALIASES.get(name, name)
    if getattr(np.linalg, name, None) is function:
        return "np.linalg." + name
    if getattr(math, name, None) is function:
        return "math." + name
    return None
