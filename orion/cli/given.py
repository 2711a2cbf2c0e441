"""What the command line says of arguments, and what is said where it says too little or what cannot be."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np

from orion.dataclass import dataclass
from orion.errors import ArgumentError, did_you_mean
from orion.ir.signature import NAMES, SUPPORTED
from orion.ir.types import ArgumentType, ArrayType, ScalarType, SparseType, Types
from orion.source import Span

T = TypeVar("T")


EXAMPLES_EACH = 3
"""Of how many arguments examples are given."""


class UsageError(Exception):
    """What was asked for makes no sense; the message says what would."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says of arguments, by their names, and the number of workers."""

    shapes: Mapping[str, tuple[int, ...]]
    sparse: Mapping[str, int]
    elements: Mapping[str, int]
    dtypes: Mapping[str, str]
    integers: Mapping[str, int]
    workers: int

    def names(self) -> Iterator[str]:
        """All names that it speaks of."""
        for part in (self.shapes, self.sparse, self.elements, self.dtypes, self.integers):
            yield from part


def read_given(options: Namespace, functions: Iterable[str], parameters: set[str], workers: int) -> Given:
    """What the options say of the parameters of the functions. UsageError for what cannot be."""
    given = Given(
        shapes=_pairs("--shape", options.shape, _shape),
        sparse=_pairs("--sparse", options.sparse, _count),
        elements=_pairs("--elements", options.elements, _count),
        dtypes=_pairs("--dtype", options.dtype, _dtype),
        integers=_pairs("--integer", options.integer, int),
        workers=workers,
    )
    for name in given.names():
        if name not in parameters:
            raise UsageError(f"`{name}` is not a parameter of {', '.join(functions)}{similar(name, parameters)}")
    return given


def similar(name: str, known: Iterable[str]) -> str:
    """What may have been meant by a name that is not known, as the end of a message.

    >>> similar("ratigs", ["ratings", "W"]), similar("x", ["ratings"])
    ('; did you mean `ratings`?', '')
    """
    found = did_you_mean(name, known)
    return found and f"; {found}"


def _pairs(option: str, values: Iterable[str], convert: Callable[[str], T]) -> dict[str, T]:
    found = {}
    for value in values:
        name, equals, text = value.partition("=")
        try:
            if not (name.isidentifier() and equals):
                raise ValueError
            found[name] = convert(text)
        except ValueError:
            raise UsageError(f"{option} {value}: write it as {option} NAME=VALUE, as in {EXAMPLES[option]}") from None
    return found


EXAMPLES = {
    "--shape": "--shape A=1000x1000", "--sparse": "--sparse ratings=2", "--elements": "--elements ratings=1000000",
    "--dtype": f"--dtype W=float32; there are {', '.join(SUPPORTED)}", "--integer": "--integer sweeps=10",
}  # fmt: skip


def _shape(text: str) -> tuple[int, ...]:
    return tuple(_count(part) for part in text.replace("×", "x").split("x"))


def _dtype(text: str) -> str:
    try:
        return NAMES[np.dtype(text)]
    except (TypeError, KeyError):
        raise ValueError from None


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


# ---------------------------------------------------------------- one function


def of_names_not_run(message: str, function: str, not_run: Mapping[str, Span]) -> str:
    """Return a message about a name that is not defined, where the file assigns it in a statement that was passed over:
    that it is so, and what to do."""
    found = NOT_DEFINED.search(message)
    place = not_run.get(found[1]) if found else None
    if found is None or place is None:
        return message
    name = found[1]
    why = f"  why:  this command runs imports, simple assignments and definitions: not {place}, which gives `{name}`"
    hint = f"  help: call `{function}.explain(…)` in the program, or make `{name}` an argument: `--shape {name}=1000`"
    lines = [line for line in message.splitlines() if not line.startswith(("  why:", "  help:"))]
    return "\n".join([*lines, why, hint]).replace(found[0], f"`{name}` is not known here", 1)


NOT_DEFINED = re.compile(r"`(\w+)[\w.]*` is not defined")


def refuse_misfits(types: Types, given: Given) -> None:
    """`ArgumentError` where something is said of an argument that does not go with what it is."""
    for name, kind in types.items():
        shape = given.shapes.get(name)
        if isinstance(kind, SparseType) and shape is not None and kind.ndim != len(shape):
            raise ArgumentError(f"`{name}` has {kind.ndim} keys, and --shape {name} gives {len(shape)}")
        if name in given.elements and not isinstance(kind, SparseType):
            hint = f"give its shape, as in `{_shape_of(name, kind)}`"
            raise ArgumentError(f"--elements is for sparse arrays, and `{name}` is taken for {_in_words(kind)}; {hint}")
        if name in given.integers and not isinstance(kind, ScalarType):
            hint = f"give its shape, as in `{_shape_of(name, kind)}`"
            raise ArgumentError(f"--integer is for numbers, and `{name}` is taken for {_in_words(kind)}; {hint}")


def _shape_of(name: str, kind: ArgumentType) -> str:
    return f"--shape {name}={'x'.join(['1000'] * (1 if isinstance(kind, ScalarType) else kind.ndim))}"


def guessed_note(types: Types, given: Given, annotated: Iterable[str], message: str) -> str:
    """What was guessed of the arguments of a function that cannot be planned so, and how to say what they are; "" where
    nothing was. Examples begin with the arguments that `message` names."""
    known = {*given.dtypes, *given.integers, *annotated}
    arrays = {*given.shapes, *given.sparse}
    guessed = {
        name: kind
        for name, kind in types.items()
        if name not in known or not (isinstance(kind, ScalarType) or name in arrays)
    }
    if not guessed:
        return ""
    told = ", ".join(f"`{name}` {_in_words(kind)}" for name, kind in guessed.items())
    first = sorted(types, key=lambda name: not re.search(rf"\b{name}\b", message))
    shapes = [f"`--shape {name}=1000x1000`" for name in first if name not in given.sparse]
    dtypes = [f"`--dtype {name}={_other_dtype(types[name])}`" for name in first if name not in known]
    examples = ", ".join(shapes[:EXAMPLES_EACH] + dtypes[:EXAMPLES_EACH])
    return f"  note: types that are not given are guessed: {told}\n        give those that are others, as in {examples}"


def _other_dtype(kind: ArgumentType) -> str:
    dtypes = kind.value_dtypes if isinstance(kind, SparseType) else (kind.dtype,)
    return "float64" if "int64" in dtypes else "int64"


def _in_words(kind: ArgumentType) -> str:
    """A type in the words of the options that give it.

    >>> _in_words(ArrayType("float64", 2)), _in_words(ScalarType("int64", weak=True))
    ('a float64 array of 2 dimensions', 'an int64')
    """
    match kind:
        case SparseType(ndim, _, values):
            return f"a sparse array of {ndim} keys, {' and '.join(values)}"
        case ArrayType(dtype, ndim):
            return f"{_article(dtype)} {dtype} array of {ndim} dimension{'s' if ndim > 1 else ''}"
        case ScalarType(dtype):
            return f"{_article(dtype)} {dtype}"


def _article(word: str) -> str:
    return "an" if word.startswith("i") else "a"
