"""What Python has and the loop language does not: what it is called, why it is refused, what to write instead."""

from __future__ import annotations

import ast

from orion.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    what: str
    why: str
    hint: str


OBJECTS = "a compiled loop works on numbers and arrays, not on Python objects"
SCHEDULE = "iterations may run in another order and in other processes, where this would do something else"
CHECK_BEFORE = "check the data before the call of this function, or count what is wrong in a scalar and return that"
WRITE_LOOP = "write a `for` loop over a range, with a scalar or an array element that takes the results"
MAKE_BEFORE = "make a NumPy array before the call and pass it as an argument"
PROGRESS = "to see progress, go through `tqdm(range(n))`, whose bar Orion shows"
MOVE_OUT = "move the definition out of the function"

STATEMENTS: dict[type[ast.stmt], Refusal] = {
    ast.Try: Refusal("`try`", "compiled code raises no exceptions that could be caught", CHECK_BEFORE),
    ast.TryStar: Refusal("`try`", "compiled code raises no exceptions that could be caught", CHECK_BEFORE),
    ast.With: Refusal("`with`", OBJECTS, "open the context around the call of the loop"),
    ast.AsyncWith: Refusal("`async with`", OBJECTS, "open the context around the call of the loop"),
    ast.AsyncFor: Refusal("`async for`", OBJECTS, "collect the data into arrays before the call"),
    ast.Import: Refusal("an import", OBJECTS, "import at the top of the file"),
    ast.ImportFrom: Refusal("an import", OBJECTS, "import at the top of the file"),
    ast.Global: Refusal("`global`", SCHEDULE, "return the scalar, or write it into an array that is an argument"),
    ast.Nonlocal: Refusal("`nonlocal`", SCHEDULE, "return the scalar, or write it into an array that is an argument"),
    ast.Delete: Refusal("`del`", OBJECTS, "leave it out: names end with the function"),
    ast.FunctionDef: Refusal("a function defined inside the loop function", OBJECTS, MOVE_OUT),
    ast.AsyncFunctionDef: Refusal("a function defined inside the loop function", OBJECTS, MOVE_OUT),
    ast.ClassDef: Refusal("a class", OBJECTS, MOVE_OUT),
    ast.Match: Refusal("`match`", OBJECTS, "write `if` and `elif`"),
}

EXPRESSIONS: dict[type[ast.expr], Refusal] = {
    ast.Lambda: Refusal("a `lambda`", OBJECTS, "write the expression where it is used, or a function outside"),
    ast.ListComp: Refusal(
        "a list comprehension", OBJECTS, f"give it a name first, `y = [… for v in x]`, or {WRITE_LOOP}"
    ),
    ast.SetComp: Refusal("a set comprehension", OBJECTS, WRITE_LOOP),
    ast.DictComp: Refusal("a dict comprehension", OBJECTS, WRITE_LOOP),
    ast.GeneratorExp: Refusal("a generator expression", OBJECTS, WRITE_LOOP),
    ast.List: Refusal("a list", OBJECTS, "make an array, `np.array([…])` or `np.zeros(n)`"),
    ast.Dict: Refusal("a dict", OBJECTS, "use arrays, indexed by integers, that are arguments"),
    ast.Set: Refusal("a set", OBJECTS, "use an array of flags, indexed by integers, that is an argument"),
    ast.JoinedStr: Refusal("an f-string", OBJECTS, f"return the numbers, and format them after the call; {PROGRESS}"),
    ast.Yield: Refusal("`yield`", SCHEDULE, "write the values into an array that is an argument"),
    ast.YieldFrom: Refusal("`yield`", SCHEDULE, "write the values into an array that is an argument"),
    ast.Await: Refusal("`await`", OBJECTS, "await before the call, and pass the result as an argument"),
    ast.NamedExpr: Refusal(
        "`:=`", "the loop language has assignments as statements only", "assign on a line of its own"
    ),
    ast.Starred: Refusal("a starred expression", OBJECTS, "write the items one by one"),
}

CALLS = {
    "print": Refusal("`print`", SCHEDULE, f"return what is to be printed, or write it into an array; {PROGRESS}"),
    "open": Refusal("`open`", SCHEDULE, "read the file into arrays before the loop"),
    "input": Refusal("`input`", SCHEDULE, "ask before the loop, and pass the answer as an argument"),
    "range": Refusal("`range` outside a `for`", OBJECTS, "write `for i in range(…):`"),
    "enumerate": Refusal("`enumerate` where no `for` goes through it", OBJECTS, "write `for i, x in enumerate(a):`"),
    "zip": Refusal("`zip` where no `for` goes through it", OBJECTS, "write `for x, y in zip(a, b):`"),
    "sorted": Refusal(
        "`sorted`", OBJECTS, "write `np.sort(x)`, also of a part, `np.sort(x[i : i + w])`, or np.argsort for the places"
    ),
    "list": Refusal("`list`", OBJECTS, MAKE_BEFORE),
    "dict": Refusal("`dict`", OBJECTS, "use arrays, indexed by integers, that are arguments"),
    "set": Refusal("`set`", OBJECTS, "use an array of flags, indexed by integers, that is an argument"),
    "isinstance": Refusal("`isinstance`", OBJECTS, "choose before the loop which function to call"),
    "divmod": Refusal("`divmod`", OBJECTS, "write `a // b` and `a % b`"),
}

SPACES = ("range", "enumerate", "zip")
"""Calls that a `for` may go through, where they are written there."""

PAIRS = (
    "pass its keys and its values as arrays, `np.array(list({0}.keys()), dtype=np.int64)` and "
    "`np.array(list({0}.values()), dtype=np.float64)`"
)
COLUMN = "`{0}['x'].to_numpy()`"
COLUMNS = f"pass the columns that the loop uses as arrays, such as {COLUMN}, and go through their subscripts"

DATES = (
    "pass integers of one unit: `x.view(np.int64)` for an array of dates, and "
    "`int({0}.astype('{1}8[D]').astype(np.int64))` for this where the unit is a day"
)
"""What to write for a date or a span of time in a loop, by the call that makes it and the letter of its dtype."""

METHODS = {"items": PAIRS, "keys": PAIRS, "values": PAIRS, "iterrows": COLUMNS, "itertuples": COLUMNS}
"""What to write for methods of dicts and data frames, by what the object is called."""
