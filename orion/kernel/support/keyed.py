"""What `orion.random` draws, compiled: the functions of `orion.keyed_random` with NumPy's integers of 64 bits.

None of them is compiled with `fastmath`: the numbers are the same bits everywhere.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np
from numba.extending import register_jitable

from orion import keyed_random


def _compiled() -> dict[str, Any]:
    space: dict[str, Any] = {**vars(keyed_random), "word": np.uint64, "signed": np.int64}
    for function in keyed_random.COMPILED:
        space[function.__name__] = register_jitable(FunctionType(function.__code__, space, function.__name__))
    return space


_functions = _compiled()
uniform_of, normal_of, integer_of = (_functions[name] for name in ("uniform_of", "normal_of", "integer_of"))


@register_jitable  # type: ignore[untyped-decorator]
def integer_between(low: int, high: int, seed: int, count: int, keys: Any, site: int) -> Any:  # pragma: no cover
    """The same; ends the walk where there is no integer to draw. `site` says where that is."""
    if low >= high:
        raise ValueError(site, low, high)
    return integer_of(low, high, seed, count, keys)
