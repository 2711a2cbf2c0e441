"""`orion explain FILE[:FUNCTION]`, which is `python -m orion explain …`: plans of the loops of a file, without running
it, and `orion explain CODE`: what a reason means."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from orion import __version__
from orion.api import ParallelFunction, parallel_for
from orion.errors import ArgumentError, OrionError, did_you_mean
from orion.inspect.cells import LoadError
from orion.inspect.guess import Known, guess_types
from orion.inspect.loading import LoadedFile, load_functions
from orion.inspect.pages import CODE, page_of
from orion.loop.parse import parse_function
from orion.loop.types import Shapes, SparseType, Types
from orion.plan.planner import plan_program
from orion.plan.sizes import Sizes
from orion.planned import Plan
from orion.prepare import Preparation
from orion.reasons import CODES
from orion.runtime.session import planned_workers

T = TypeVar("T")
AnyFunction = ParallelFunction[..., Any]

DESCRIPTION = """\
Print the plans of the decorated loops of a file or a notebook, without running it: of its top level only imports,
assignments of simple values and function definitions are executed. Sizes stay symbols where --shape does not give them.
For the code of a reason, such as ORN102, print what it means and what to write instead."""

EPILOG = """\
exit status: 0; 1 where a function cannot be planned, or with --check where a loop is serial; 2 for wrong usage."""


class UsageError(Exception):
    """What was asked for makes no sense; the message says what would."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        status = _run(_parser().parse_args(arguments))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever reads has enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the interpreter's end flushes nothing
        return 128 + SIGPIPE


SIGPIPE = 13
"""The number of the signal, which Windows does not have."""


def _run(options: Namespace) -> int:
    try:
        return _page_of_code(options.target) if _is_code(options.target) else _explain(options)
    except (UsageError, LoadError) as error:
        print(f"orion: {error}", file=sys.stderr)
        return 2


def _is_code(target: str) -> bool:
    return CODE.fullmatch(target) is not None and not Path(target).exists()


def _page_of_code(code: str) -> int:
    page = page_of(code)
    if page is None:
        raise UsageError(f"no reason has the code {code.upper()}; there are {', '.join(CODES)}")
    print(page)
    return 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser("orion", description="Runs ordinary Python loops in parallel, and proves that it may.")
    parser.add_argument("--version", action="version", version=f"orion {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    explain = commands.add_parser("explain", help="print plans", description=DESCRIPTION, epilog=EPILOG)
    explain.add_argument("target", metavar="FILE[:FUNCTION]|CODE", help="a script, a notebook, or a code like ORN102")
    _add_pairs(explain, "--shape", "A=1000x1000", "the shape of an array, sparse ones too")
    _add_pairs(explain, "--sparse", "A=2", "A is sparse, with so many keys")
    _add_pairs(explain, "--elements", "A=1000000", "the number of elements of a sparse array")
    _add_pairs(explain, "--dtype", "A=float32", "the dtype of an array, or of a scalar")
    _add_pairs(explain, "--integer", "n=10", "the value of an integer argument")
    explain.add_argument("--workers", type=int, metavar="N", help="plan for N workers")
    explain.add_argument("--json", action="store_true", help="print JSON rather than text")
    explain.add_argument("--html", type=Path, metavar="FILE", help="write the notebook view as a page")
    explain.add_argument("--svg", type=Path, metavar="FILE", help="write the picture of each loop")
    explain.add_argument("--check", action="store_true", help="exit with 1 if any loop is serial")
    return parser


def _add_pairs(parser: ArgumentParser, option: str, example: str, words: str) -> None:
    """An option that may be given several times, each for one argument of the loops."""
    parser.add_argument(option, metavar=example, help=words, action="append", default=[])


def _explain(options: Namespace) -> int:
    if options.workers is not None and options.workers < 1:
        raise UsageError(f"--workers {options.workers}: give 1 or more")
    path, name = _target(options.target)
    loaded = load_functions(path, parallel_for)
    functions = _chosen(loaded, path, name)
    given = _given(options, functions)
    plans, failed = _plans(functions, loaded, given)
    _print(plans, options.json)
    if options.html:
        _write(options.html, _page(plans))
    if options.svg:
        _write_pictures(options.svg, plans)
    is_serial = any(not plan.is_parallel for plan in plans)
    return 1 if failed or (options.check and is_serial) else 0


def _target(target: str) -> tuple[Path, str]:
    """The file and the function of "FILE[:FUNCTION]"; a colon that is part of the file's name counts as that."""
    if Path(target).exists() or ":" not in target:
        return Path(target), ""
    file, _, name = target.rpartition(":")
    return Path(file), name


def _chosen(loaded: LoadedFile, path: Path, name: str) -> dict[str, AnyFunction]:
    for hidden, place in loaded.hidden:
        note = "is defined inside a function or class, and is known only when that runs"
        print(f"orion: {place}: passing over `{hidden}`: it {note}", file=sys.stderr)
    functions = {name: found for name, found in loaded.functions.items() if isinstance(found, ParallelFunction)}
    if not functions:
        raise UsageError(f"{path} has no function decorated with orion.parallel_for at its top level")
    if not name:
        return functions
    if name not in functions:
        has = f"{path} has no decorated function `{name}`; it has {', '.join(functions)}"
        raise UsageError(f"{has}{_similar(name, functions)}")
    return {name: functions[name]}


def _similar(name: str, known: Iterable[str]) -> str:
    found = did_you_mean(name, known)
    return found and f"; {found}"


# ---------------------------------------------------------------- what the options give


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


def _given(options: Namespace, functions: dict[str, AnyFunction]) -> Given:
    given = Given(
        shapes=_pairs("--shape", options.shape, _shape),
        sparse=_pairs("--sparse", options.sparse, _count),
        elements=_pairs("--elements", options.elements, _count),
        dtypes=_pairs("--dtype", options.dtype, _dtype),
        integers=_pairs("--integer", options.integer, int),
        workers=options.workers or _workers_here(),
    )
    parameters = {name for function in functions.values() for name in inspect.signature(function).parameters}
    for name in given.names():
        if name not in parameters:
            raise UsageError(f"`{name}` is not a parameter of {', '.join(functions)}{_similar(name, parameters)}")
    return given


def _workers_here() -> int:
    """The workers that loops are planned for without --workers: as the variables of the environment say."""
    try:
        workers, _ = planned_workers()
    except ArgumentError as error:
        raise UsageError(LABEL.sub("; ", str(error))) from None
    return workers


LABEL = re.compile(r"\n  (?:why|help): +")
"""Where the parts of an error message begin."""


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
    "--dtype": "--dtype W=float32", "--integer": "--integer sweeps=10",
}  # fmt: skip


def _shape(text: str) -> tuple[int, ...]:
    return tuple(_count(part) for part in text.replace("×", "x").split("x"))


def _dtype(text: str) -> str:
    try:
        return np.dtype(text).name
    except TypeError:
        raise ValueError from None


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


# ---------------------------------------------------------------- plans


def plan_function(function: AnyFunction, definition: ast.FunctionDef, given: Given) -> Plan:
    """The plan of a function. Sizes that are not given are symbols.

    Raises `ArgumentError` for a shape that does not fit, and `UnsupportedLoopError` for code that cannot be compiled.
    """
    types = _types(function, definition, given)
    shapes: Shapes = {name: given.shapes[name] for name in types if name in given.shapes}
    typed, shapes = Preparation(function.__wrapped__, function.options).typed_for(types, shapes, given.integers)
    integers = {name: given.integers[name] for name in typed.parameters if name in given.integers}
    counts = {name: given.elements[name] for name in types if name in given.elements}
    sizes = Sizes(shapes, integers, counts, given.workers, symbolic=True)
    sizes = typed.all_sizes(sizes)
    return Plan(plan_program(typed.analysed, typed.types, sizes), sizes, {})


def _types(function: AnyFunction, definition: ast.FunctionDef, given: Given) -> Types:
    parsed = parse_function(function.__wrapped__)
    known = Known(
        ranks={name: len(shape) for name, shape in given.shapes.items() if name not in given.sparse},
        sparse=given.sparse,
        dtypes=given.dtypes,
        scalars=dict.fromkeys(given.integers, "int") | _annotated(definition),
    )
    types = guess_types(parsed, known)
    for name, shape in given.shapes.items():
        kind = types.get(name)
        if isinstance(kind, SparseType) and kind.ndim != len(shape):
            raise ArgumentError(f"`{name}` has {kind.ndim} keys, and --shape {name} gives {len(shape)}")
    return types


def _annotated(definition: ast.FunctionDef) -> dict[str, str]:
    """The parameters annotated as Python scalars."""
    head = definition.args
    return {
        argument.arg: argument.annotation.id
        for argument in (*head.posonlyargs, *head.args, *head.kwonlyargs)
        if isinstance(argument.annotation, ast.Name) and argument.annotation.id in ("int", "float", "bool")
    }


def _plans(functions: dict[str, AnyFunction], loaded: LoadedFile, given: Given) -> tuple[list[Plan], bool]:
    """The plans, and whether there is a function without one; why not goes to the standard error stream."""
    plans, failed = [], False
    for name, function in functions.items():
        try:
            plans.append(plan_function(function, loaded.definitions[name], given))
        except OrionError as error:
            failed = True
            print(f"{name}: {error}", file=sys.stderr)
    return plans, failed


# ---------------------------------------------------------------- what is shown


def _print(plans: Sequence[Plan], as_json: bool) -> None:
    if as_json:
        print(json.dumps([plan.to_dict() for plan in plans], indent=2))
    elif plans:
        print("\n\n\n".join(map(str, plans)))


def _page(plans: Sequence[Plan]) -> str:
    views = "\n".join(plan._repr_html_() for plan in plans)
    head = '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Plans</title>'
    return f"{head}\n<body>\n{views}\n</body></html>\n"


def _write_pictures(path: Path, plans: Sequence[Plan]) -> None:
    """The pictures of all loops: the first as `path`, the others with a number added to its name."""
    pictures = [plan.svg_of(loop) for plan in plans for loop in plan.loops]
    for number, picture in enumerate(pictures, 1):
        _write(path if number == 1 else path.with_stem(f"{path.stem}-{number}"), picture)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
