"""What Numba says of a user's function that it does not compile, in words of Python.

Types, opcodes and paths of its own are left out. Where nothing else remains, the error says that it gives no reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from numba.core.errors import NumbaError, UnsupportedBytecodeError

from orion.kernel.build.numba_words import in_one_line

OPERATIONS = {
    "add": "`+`", "sub": "`-`", "mul": "`*`", "truediv": "`/`", "floordiv": "`//`", "mod": "`%`", "pow": "`**`",
    "matmul": "`@`", "and_": "`&`", "or_": "`|`", "xor": "`^`", "lshift": "`<<`", "rshift": "`>>`", "lt": "`<`",
    "le": "`<=`", "gt": "`>`", "ge": "`>=`", "eq": "`==`", "ne": "`!=`", "contains": "`in`", "neg": "`-`",
    "iadd": "`+=`", "isub": "`-=`", "imul": "`*=`", "itruediv": "`/=`", "imatmul": "`@=`", "ior": "`|=`",
    "iand": "`&=`", "ixor": "`^=`", "getitem": "subscript", "static_getitem": "subscript", "getiter": "loop over items",
    "setitem": "assignment to a subscript", "static_setitem": "assignment to a subscript",
    "delitem": "`del` of a subscript",
}  # fmt: skip
"""Numba's names of operations, and how a message calls them."""

LITERAL = re.compile(r"Literal\[(\w+)\]\(.*?\)(?=[,)\]]|$| )")
BRACKETS = {"(": 1, "[": 1, "<": 1, ")": -1, "]": -1, ">": -1}
CALLED = re.compile(r"No implementation of function .*?found for signature: ?(.*?)\((.*)\)$")
INVALID = re.compile(r"Invalid use of (.*?) with parameters \((.*)\)$")
VALUE_CALLED = re.compile(r"Invalid use of (.*) with parameters \(.*\)\n.* as a callable\.")
FUNCTION = re.compile(r"(?:Function\()?(?:<(?:built-in function|function|class|ufunc) '?)?([\w.]+)'?>?\)?")

KINDS = (
    (r"int|Literal\[int\]", "an integer"), (r"float", "a float"), (r"complex", "a complex number"),
    (r"str|Literal\[str\]|unicode_type", "text"), (r"bool|boolean|Literal\[bool\]", "a truth value"), (r"none", "None"),
    (r"u?int\d+|float\d+|complex\d+|u?intp", r"\g<0>"), (r"(?:reflected )?list\b.*|ListType\b.*", "a list"),
    (r"DictType\b.*|dict\b.*", "a dict"), (r"(?:reflected )?set\b.*", "a set"), (r"\w*Tuple\b.*", "a tuple"),
    (r"Record\b.*", "a record"), (r"(?:type\()?CPUDispatcher\b.*|[Ff]unction\b.*|sin|cos", "a function"),
    (r"(?:readonly |unaligned )*array\(Record\b.*", "an array of records"),
    (r"(?:readonly |unaligned )*array\((\w+), .*", r"an array of \1"), (r"[Mm]odule\b.*", "a module"),
)  # fmt: skip
"""How Numba writes types, and how a message calls their values."""

SENTENCES: tuple[tuple[str, str], ...] = (
    (
        r"Untyped global name '(.+?)': Cannot determine Numba type of <class 'type'>",
        r"`\1` is a class, which is not supported",
    ),
    (
        r"Untyped global name '(.+?)': Cannot determine Numba type of <class 'builtin_function_or_method'>",
        r"`\1` is a function of Python's, which is not supported",
    ),
    (
        r"Untyped global name '(.+?)': Cannot determine Numba type of <class '(?:.*\.)?(\w+)'>",
        r"`\1` is a `\2`, which is not supported",
    ),
    (r"NameError: name '(\w+)' is not defined", r"`\1` is not defined"),
    (r"Use of unsupported opcode \((?:STORE|DELETE)_GLOBAL\)", "it assigns to a global name"),
    (r"(?:Use of )?unsupported op-?code", "a statement of this kind is not supported"),
    (r".*Variable '(\w+)' is not defined", r"`\1` is read in a line above those that give it a value"),
    (r"Exception object cannot be stored into variable \((\w+)\)", r"`except … as \1` is not supported"),
    (r"The 'with \(context manager\) as", "`with … as …` is not supported"),
    (r"Reassigning the nonlocal variable '(\w+)'", r"a local function assigns to `nonlocal \1` several times"),
    (r"Unsupported use of cell variable encountered", "a local function reads a name that gets its value later"),
    (r"The use of yield in a closure is unsupported", "a generator expression is not supported"),
    (r"Cannot infer the type of variable '(\w+)'.*undefined", r"nothing says which items `\1` is to hold"),
    (r"Cannot infer the type of variable .*undefined", "nothing says which items a list or dict is to hold"),
    (r"Cannot infer the type of variable '(\w+)'", r"the type of `\1` is not found"),
    (r"Type of variable '(\w+)' cannot be determined", r"the type of `\1` is not found"),
    (
        r"Cannot infer the type of|Type of variable .* cannot be determined|Undecided type",
        "the type of a value is not found",
    ),
    (r"list\b.* as value is forbidden", "a dict whose values are lists is not supported"),
    (r"\*args in function call should be a tuple", "`*` before an argument that is no tuple is not supported"),
    (r"Unknown attribute '(\w+)' of type (.*)", r"attribute `\1` of {2} is not supported"),
    (r"Cannot unify (.*) and (.*) for '(\w+)'", r"`\3` is {1} on one path and {2} on another"),
    (r"Cannot unify (.*?) and (.*?) for a value", r"a value is {1} on one path and {2} on another"),
)
"""What Numba says, and what a message says instead: `{1}` is a value of the type that group 1 names."""

SPEAKING = NumbaError, UnsupportedBytecodeError, NotImplementedError
"""The errors that say something of the function; others are failures of Numba's own."""

OWN = re.compile(
    r"<|\bIR\b|\bNumba\b|\biv=|\(temporary variable\)|Function\(|\bFile \"|op_[A-Z]|, \dd, [ACF]\)|/|Record\("
)
"""What only Numba's own words have."""


def in_user_words(error: Exception) -> str:
    """What an error of Numba's says, in one line; empty where nothing of it is for the user.

    >>> in_user_words(NumbaError("No implementation of function mod found for signature:\\n mod(unicode_type, int64)"))
    '`%` of text and int64 is not supported'
    >>> in_user_words(AssertionError("blk.terminator"))
    ''
    """
    is_own = isinstance(error, SPEAKING)
    text = re.sub(r"\.*\s*Raised from .*", "", in_one_line(str(error))) if is_own else ""
    text = re.sub(r",? defined at .*", "", text)
    if found := VALUE_CALLED.search(str(error)) if is_own else None:
        return f"what it calls is {_kind(found[1])}, not a function"
    if found := CALLED.match(text) or INVALID.match(text):
        return _of_call(found[1], found[2])
    for pattern, words in SENTENCES:
        if found := re.match(pattern, text):
            return re.sub(r"\{(\d)\}", _kind_in(found), found.expand(words))
    return "" if OWN.search(text) else text.rstrip(".")


def _kind_in(found: re.Match[str]) -> Callable[[re.Match[str]], str]:
    return lambda number: _kind(found[int(number[1])])


def _of_call(function: str, arguments: str) -> str:
    """The sentence on a function that there is not for some arguments."""
    named = FUNCTION.match(function)
    name = named[1].rpartition(".")[2].removeprefix("impl_") if named and "unknown" not in function else ""
    name = re.sub(r"^npy_", "np.", name)
    operation = f"{OPERATIONS.get(name, f'`{name}`')} of" if name else "this call with"
    kinds = [_kind(one) for one in _split(LITERAL.sub(r"Literal[\1]", arguments))]
    return f"{operation} {_listed(kinds) if kinds else 'no arguments'} is not supported"


def _split(arguments: str) -> list[str]:
    """The arguments of a signature: what stands between commas outside of all brackets.

    >>> _split("array(int64, 1d, C), float64")
    ['array(int64, 1d, C)', 'float64']
    """
    found, depth = [""], 0
    for letter in arguments:
        depth += BRACKETS.get(letter, 0)
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [one.strip() for one in found if one.strip() and not one.strip().startswith("omitted")]


def _kind(text: str) -> str:
    """What a message calls a value of a type of Numba's.

    >>> _kind("unaligned array(Record(x[type=float64;offset=0];8;False), 1d, C)"), _kind("axis=Literal[int](0)")
    ('an array of records', '`axis=`')
    """
    plain = LITERAL.sub(r"Literal[\1]", text.strip())
    if keyword := re.match(r"(\w+)=", plain):
        return f"`{keyword[0]}`"
    for pattern, words in KINDS:
        if found := re.fullmatch(pattern, plain):
            return found.expand(words)
    return "another value"


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
