"""Names in generated source that do not collide."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

from orion.ir.python_names import is_said
from orion.typing.functions import FUNCTIONS, Own

DTYPES = (
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "complex64", "complex128",
)  # fmt: skip
INTRINSICS = (
    "add_to_sum", "branch", "checked", "checked_narrow", "dot_of_rows", "dot_of_rows_in_order", "helper_function",
    "is_after_end", "is_alarmed", "is_inside", "is_left", "is_to_leave", "likely", "part_function", "seldom",
    "tell_end", "tile_function", "walk_function", "with_elements",
)  # fmt: skip
KEYED = ("integer_between", "normal_of", "uniform_of")
SLICES = ("assign_part", "put_part", "put_whole")
OWN = sorted(name.removeprefix("np.") for name, row in FUNCTIONS.items() if row.own is not Own.NEVER)
LANES = sorted({row.lanes for row in FUNCTIONS.values() if row.lanes})
NUMBERS = (
    "fitting", "float_power", "floor_divided", "held_stop", "int_power", "near_remainder", "nonzero", "python_power",
    "shifted_left", "shifted_right", "signed", "signed_start", "signed_stop", "trip_count",
)  # fmt: skip
NUMPYS = (*(f"{name}_{kind}" for name in OWN for kind in ("of", "each")), "max_of_row", "min_of_row")
SUMS = ("dot", "dot_in_order", "row_max", "row_min", "row_sum", "row_sum_in_order")
VECTORS = tuple(
    sorted(["fma", "load_row", "prefetch_row", "row_as_float32", "row_as_float64", "spread", "store_row", *LANES])
)
BUFFERS = (
    "add_at", "begin_tile", "has_applied", "has_done_all", "is_in_no_tile", "left_of", "lock", "may_begin", "my_turn",
    "note_in_list", "note_part", "tell_not_a_number", "turn_is_over", "unlock",
)  # fmt: skip
REPLICAS = (
    "alpha_of", "average", "average_with_momentum", "await_turn", "give_turn", "keep_copy", "meet", "meeting_is_over",
    "pull", "pull_all", "pull_freely", "pulled_at_home", "seen_elsewhere", "with_momentum",
)  # fmt: skip
OVERLAPPED = (
    "alpha_overlapped", "await_given", "await_posts", "await_settled", "has_posted", "move_own", "pull_posted",
    "settle_array", "settle_own",
)  # fmt: skip
COMPLEXES = ("complex_divided", "complex_power")
MODULES = (
    ("numba", DTYPES),
    ("orion.kernel.support.buffers", BUFFERS),
    ("orion.kernel.support.complexes", COMPLEXES),
    ("orion.kernel.support.intrinsics", INTRINSICS),
    ("orion.kernel.support.keyed", KEYED),
    ("orion.kernel.support.numbers", NUMBERS),
    ("orion.kernel.support.numpys", NUMPYS),
    ("orion.kernel.support.overlapped", OVERLAPPED),
    ("orion.kernel.support.replicas", REPLICAS),
    ("orion.kernel.support.slices", SLICES),
    ("orion.kernel.support.sums", SUMS),
    ("orion.kernel.support.vectors", VECTORS),
)
"""What generated source imports, by module."""

ROUND = "this_round"
"""How a tile calls the number of the round: not `round`, which is Python's function."""

LOCALS = (
    "np", "math", "tile", "round", ROUND, "offsets", "boxes", "control", "first", "last", "receive",
)  # fmt: skip
IMPORTED = frozenset[str]().union(*(names for _, names in MODULES))
RESERVED = IMPORTED.union(LOCALS)


class Names:
    """The names of one generated module. Those of the user's are kept wherever they can be."""

    def __init__(self, user_names: Iterable[str]) -> None:
        self._taken = set(RESERVED)
        self._user: dict[str, str] = {}
        for name in sorted(user_names):
            self._user[name] = self.fresh(name)

    def user(self, name: str) -> str:
        """What the user's name is called in the generated source.

        >>> Names(["W", "control"]).user("control")
        'control_2'
        """
        return self._user[name]

    def given(self) -> tuple[tuple[str, str], ...]:
        """The names in the generated source that stand for the user's, each with that.

        >>> Names(["W", "control"]).given()
        (('W', 'W'), ('control_2', 'control'))
        """
        return tuple((name, own) for own, name in self._user.items())

    def knows(self, name: str) -> bool:
        """Whether the user's name is used in the generated source."""
        return name in self._user

    def temporary(self, wish: str) -> str:
        """A new name that can be used like one of the user's."""
        name = self.fresh(wish)
        self._user[name] = name
        return name

    def fresh(self, wish: str) -> str:
        """A name not given out before, as close to `wish` as can be.

        >>> names = Names(["W_i"])
        >>> names.fresh("W_i"), names.fresh("W[i+1]")
        ('W_i_2', 'W_i_1')
        """
        base = re.sub(r"\W+", "_", wish).strip("_") or "_"
        if base[0].isdigit():
            base = "x" + base
        name, count = base, 1
        while name in self._taken or keyword.iskeyword(name) or is_said(name):
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name
