"""Why a loop is not run by a stronger strategy: reasons with stable codes.

A code is one row of `CODES` and its page, a section of `reasons.md` beside this file. Codes are part of the public
interface: they are never given a new meaning. `docs/how-it-works/extending.md` says how to add one.
"""

from __future__ import annotations

from enum import StrEnum

from orion.dataclass import dataclass
from orion.source import Span


class ReasonKind(StrEnum):
    """Effect of a reason: it keeps a loop serial, rules out a stronger strategy, limits the number of workers, or is a
    note."""

    BLOCKS = "blocks"
    RULES_OUT = "rules out"
    SIZES = "sizes"
    NOTE = "note"


class Hint:
    """Hints for all reasons that claim a cure. Those with a brace are filled in.

    `tests/test_inspect_hints.py` follows each hint, and shows that the loop is then parallel.
    """

    NEEDED = (
        "the later iteration needs what the earlier one wrote; only another way to compute it, without that need, "
        "can be shared out"
    )
    COPY = "read from a copy of `{array}` made before the loop"
    OLD_VALUES = (
        "if iterations need only what `{array}` held before the loop, read from a copy of it made there; where they"
        " need what others wrote, they stay in their order"
    )
    ELEMENTS = (
        "let each iteration write elements of `{array}` of its own; an element that many may set can be a scalar "
        "that the loop sets, stored after it"
    )
    STEP = (
        "give the step of the range as an argument, or write it as a number: one that the function computes may be 0 "
        "or negative, and iterations then meet"
    )
    KEY = (
        "make the subscript a loop variable: loop over a sparse array that has it as a key, `for (k, i), value in "
        "data:`, with `ordered=True` where the order of equal keys matters; or group the data by it and loop over the "
        "groups"
    )
    AFFINE = (
        "write the subscript as a sum of loop variables and constants, or compute it before the loop into a key of "
        "a sparse array, `for (k, i), value in data:`"
    )
    FLATTENED = (
        "use an array of two dimensions, or only subscripts such as `A[i * m + j]` with 0 <= j < m, m an integer "
        "argument, wherever the array is used"
    )
    VIEW = "bind the name once, to one row"
    BOUNDS = (
        "compute the bounds from the loop variables, as for rows of one length; or go over all elements in one "
        "loop, with an array that says which row each is in"
    )
    SCALAR = (
        "compute `{name}` in each iteration from the loop variable and from arrays, without its value of the "
        "iteration before; sums and products that nothing else in the loop reads need not be changed"
    )
    BEST = (
        "a least or greatest value is found in parallel where an `if value < {name}:` (or >, <=, >=) sets `{name} ="
        " value` and what belongs to it, and nothing else in the loop reads or sets these"
    )
    LIST = (
        "where each iteration of one loop appends one item to `{name}`, without conditions, it may be shared out; any "
        "other list is filled in order"
    )
    IN_TURN = (
        "narrow the loop so that its subscripts stay in their arrays, or evaluate it in every iteration, by a name "
        "of its own: `found = a[i] > 3`, then `{name} = {name} or found`"
    )
    EXIT = (
        "find the first iteration that leaves in a loop of its own, `if …: first = i` and `break`, and then go "
        "through all iterations with the rest under `if i < first:`"
    )
    LAST = "set another name than `{name}`, which a bound of the loop reads"
    VARIABLE = "give what the body assigns to the loop variable `{name}` another name"
    RANGE = "pass the bound as an argument, or compute it from arguments and shapes in integers, with `//` for `/`"
    TRUTH = "pass an integer, `int({name})`"
    LIMIT = "simpler subscripts, or a loop for each statement, may be looked at in time"


@dataclass(frozen=True, slots=True)
class Code:
    """A row: what a code means, and how its reasons are shown.

    `title` is what the code stands for, in a clause. `kind` and `hint` are those of its reasons, unless they are given
    others (`Reason.of`). `label` is where its notes stand in a plan. `considered` is the way to run the loop that it is
    against, told among those not taken. `about_scalar`: its message names a scalar, no array; `about_subscript`: the
    elements that an access touches are not known. `alone`: what dependences there are is not told beside it. `last`: it
    is told after them, as it may be no obstacle without them.
    """

    title: str
    kind: ReasonKind = ReasonKind.BLOCKS
    hint: str = ""
    label: str = "notes"
    considered: str = ""
    about_scalar: bool = False
    about_subscript: bool = False
    alone: bool = False
    last: bool = False


CODES = {
    "ORN101": Code("iterations of the loop depend on each other"),
    "ORN102": Code("a subscript is read from an array", hint=Hint.KEY, about_subscript=True),
    "ORN103": Code("a subscript is not affine in the loop variables", hint=Hint.AFFINE, about_subscript=True),
    "ORN104": Code("a scalar carries a value from one iteration to the next", about_scalar=True),
    "ORN105": Code("a name may be a view of more than one row", hint=Hint.VIEW),
    "ORN107": Code("the bounds of an inner loop depend on data", hint=Hint.BOUNDS),
    "ORN108": Code("the iterations cannot be counted before the loop runs", hint=Hint.RANGE, alone=True),
    "ORN109": Code("the analysis reached its cost limit", hint=Hint.LIMIT),
    "ORN110": Code("the loop can be left early", hint=Hint.EXIT, last=True),
    "ORN111": Code("a scalar needed after the loop is set by its last iteration", about_scalar=True),
    "ORN120": Code("more workers would not make it faster", ReasonKind.SIZES),
    "ORN121": Code("there is less to share out than there are workers", ReasonKind.SIZES),
    "ORN122": Code(
        "copies of an array that the iterations add to would cost more than they gain",
        considered="copies for each block",
    ),
    "ORN123": Code("neighbouring loops that use the same arrays are not fused", ReasonKind.NOTE, label="fused"),
    "ORN124": Code(
        "a copy of an array, made before the loop, would cost more than it gains",
        considered="copies made before the loop",
    ),
    "ORN125": Code("a condition does not hold in this call", ReasonKind.NOTE),
    "ORN126": Code("tiles would run one after another", ReasonKind.SIZES, considered="tiles that wait for each other"),
    "ORN127": Code("what subscripts are read from was not looked at yet", ReasonKind.NOTE),
    "ORN128": Code(
        "tiles found by looking at subscripts would gain too little",
        ReasonKind.SIZES,
        considered="tiles found by looking at subscripts",
    ),
    "ORN129": Code("tiles were found by looking at subscripts", ReasonKind.NOTE),
    "ORN130": Code("loops that store values of a sparse array go through it in the same tiles"),
    "ORN131": Code("what a loop touches cannot be listed before it runs", ReasonKind.NOTE),
    "ORN132": Code("a loop repeats updates of a buffer or a replica"),
    "ORN133": Code("updates in a fixed order cannot be applied between tiles that wait for each other"),
    "ORN134": Code("an accumulator is combined in the order of the iterations"),
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason why a loop has no stronger strategy, with the accesses or statements it is about.

    - `kind`: "blocks", "rules out", "sizes" or "note"; it decides where the reason is shown.
    - `code`: a stable code, which `orion explain CODE` explains; a key of `CODES`.
    - `message`: one sentence about this loop.
    - `spans`: places in the source, such as both accesses of a conflicting pair.
    - `hint`: what to write instead, or an empty text.

    >>> reason = Reason(ReasonKind.BLOCKS, "ORN102", "the subscript perm[i] is read from an array", (), "")
    >>> reason.title, reason.told
    ('a subscript is read from an array', 'the subscript perm[i] is read from an array [ORN102]')
    """

    kind: ReasonKind
    code: str
    message: str
    spans: tuple[Span, ...]
    hint: str

    @classmethod
    def of(cls, code: str, message: str, *spans: Span, hint: str | None = None) -> Reason:
        """A reason of the kind that its code has, with the hint of its code where no other is given."""
        row = CODES[code]
        return cls(row.kind, code, message, spans, row.hint if hint is None else hint)

    def __repr__(self) -> str:
        where = f" (line {self.spans[0].line})" if self.spans else ""
        return f"<Reason {self.code}{where}: {self.message}>"

    @property
    def title(self) -> str:
        return self.row.title

    @property
    def row(self) -> Code:
        """Row of its code in `CODES`."""
        return CODES[self.code]

    @property
    def told(self) -> str:
        """Message and code, in one line."""
        return f"{self.message} [{self.code}]"

    @property
    def help(self) -> str:
        """The hint, to be appended to what is told; empty where there is none."""
        return f"; help: {self.hint}" if self.hint else ""

    @property
    def is_about_a_pair(self) -> bool:
        """Whether it is about two accesses that conflict: those are shown with the conflict."""
        return len(self.spans) > 1
