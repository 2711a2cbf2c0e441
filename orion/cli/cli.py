"""`orion explain FILE[:FUNCTION]`, which is `python -m orion explain …`: plans of the loops of a file, without running
it, and `orion explain CODE`: what a reason means."""

from __future__ import annotations

import ast
import inspect
import json
import linecache
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from orion import __version__
from orion.api import ParallelFunction, parallel_for
from orion.cli.build.command import add_build
from orion.cli.cells import LoadError
from orion.cli.given import Given, UsageError, guessed_note, of_names_not_run, read_given, refuse_misfits, similar
from orion.cli.guess import Known, guess_types
from orion.cli.loading import LoadedFile, load_functions
from orion.cli.mends.command import mend_file
from orion.cli.mends.mending import Mended
from orion.cli.mends.refusals import fixes_of
from orion.cli.mends.text import read_file
from orion.cli.pages import CODE, page_of
from orion.cli.shown import in_columns, show
from orion.cli.stages import stages_text
from orion.cost.sizes import Sizes
from orion.dataclass import dataclass
from orion.errors import AS_IT_IS, ArgumentError, OrionError, OutOfBoundsError, is_of_user
from orion.frontend.parse import parse_function
from orion.inspect.sarif import Refusal, sarif_log
from orion.inspect.text.text import terminal_width
from orion.ir.signature import argument_types
from orion.ir.types import ScalarType, Shapes, Types
from orion.known import Typed, check_sizes
from orion.passes.defaults import Defaults
from orion.passes.options import Words, with_options, words_in
from orion.pipeline import planned
from orion.planned import Plan
from orion.prepare import Preparation
from orion.printable import printable
from orion.reasons import CODES
from orion.runtime.session import planned_workers
from orion.source import Replacement, Span

AnyFunction = ParallelFunction[..., Any]

DESCRIPTION = """\
Print the plans of the decorated loops of files and notebooks, without running them: of a top level only imports,
assignments of simple values and function definitions are executed. Sizes stay symbols where --shape and --integer do
not give them; types are guessed from what a function does with an argument where --dtype, --shape and --sparse do not.
For the code of a reason, such as ORN102, print what it means and what to write instead."""

STAGES = """\
Print what the compiler makes of a function: its text after every pass that changes it, its variants in the order in
which they are tried, the rewrites that made the one that is taken, and the program that is run. The environment
variable ORION_REWRITES leaves rewrites out by name, as in ORION_REWRITES=-fuse,-jam."""

DOCTOR = """\
Print what is installed, what this machine can do (measured, in less than two seconds), where compiled loops are kept,
and what makes loops slower here than they could be, with why. No loop runs, and no worker starts."""

AUDIT = """\
Say of each loop over numba.prange whether its iterations may run at the same time: parallel, parallel under a
condition, a race with two iterations that show it, or unknown and why. Nothing is imported or executed. The loops need
not be Orion's."""

AUDIT_EPILOG = """\
exit status: 0; 1 where a loop races; 2 for wrong usage. Files that cannot be parsed are listed and passed over."""

EPILOG = """\
exit status: 0; 1 where a function cannot be planned, or with --check where a loop is serial; 2 for wrong usage."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        status = _run(_parser().parse_args(arguments))
        if sys.stdout is not None:  # closed by whoever started it: what is printed goes nowhere
            sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever reads has enough, such as `head`
        _print_no_more()
        return 128 + SIGPIPE
    except OSError as error:  # files are read and written where it is caught: this is the standard output
        _print_no_more()
        print(f"orion: cannot write to the standard output: {error.strerror or error}", file=sys.stderr)
        return 2


def _print_no_more() -> None:
    """Let the interpreter's end, which prints what is left, do so without another error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


SIGPIPE = 13
"""The number of the signal, which Windows does not have."""


def _run(options: Namespace) -> int:
    try:
        targets = getattr(options, "targets", [getattr(options, "target", "")])
        if all(map(_is_code, targets)):
            show("\n\n\n".join(map(_page_of_code, targets)))
            return 0
        return int(options.run(options))
    except (UsageError, LoadError) as error:
        print(f"orion: {error}", file=sys.stderr)
        return 2


def _is_code(target: str) -> bool:
    return CODE.fullmatch(target) is not None and not Path(target).exists()


def _page_of_code(code: str) -> str:
    page = page_of(code)
    if page is None:
        raise UsageError(f"no reason has the code {code.upper()}; there are {', '.join(CODES)}")
    return in_columns(printable(page), terminal_width())


def _parser() -> ArgumentParser:
    parser = ArgumentParser("orion", description="Runs ordinary Python loops in parallel, and proves that it may.")
    parser.add_argument("--version", action="version", version=f"orion {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    explain = commands.add_parser("explain", help="print plans", description=DESCRIPTION, epilog=EPILOG)
    explain.set_defaults(run=_explain)
    what = "scripts, notebooks, or codes like ORN102"
    explain.add_argument("targets", nargs="+", metavar="FILE[:FUNCTION]|CODE", help=what)
    _add_sizes(explain)
    explain.add_argument("--all", action="store_true", help="print all loops of a function that has very many")
    explain.add_argument("--json", action="store_true", help="print JSON rather than text")
    explain.add_argument("--html", type=Path, metavar="FILE", help="write the notebook view as a page")
    explain.add_argument("--svg", type=Path, metavar="FILE", help="write the picture of each loop")
    sarif = "write the reasons as SARIF 2.1.0; `-` prints them alone"
    explain.add_argument("--sarif", type=Path, metavar="FILE", help=sarif)
    explain.add_argument("--fix", action="store_true", help="write mends of refused and serial loops, and print them")
    explain.add_argument("--diff", action="store_true", help="print the mends that --fix writes")
    explain.add_argument("--check", action="store_true", help="exit with 1 if any loop is serial")
    stages = commands.add_parser("stages", help="print what the compiler makes of a function", description=STAGES)
    stages.set_defaults(run=_stages)
    stages.add_argument("target", metavar="FILE[:FUNCTION]", help="a script or a notebook")
    _add_sizes(stages)
    add_build(commands)
    prange = commands.add_parser("audit", help="say which prange loops race", description=AUDIT, epilog=AUDIT_EPILOG)
    prange.set_defaults(run=_audit)
    prange.add_argument("path", metavar="PATH", help="a file, a folder, or the name of an installed package")
    form = prange.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON rather than text")
    form.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0 rather than text")
    about = commands.add_parser("doctor", help="say what is installed, and what is slow here", description=DOCTOR)
    about.set_defaults(run=_doctor)
    about.add_argument("--json", action="store_true", help="print JSON rather than text")
    about.add_argument("--clear-cache", action="store_true", help="remove the compiled loops from the cache folder")
    return parser


def _doctor(options: Namespace) -> int:
    from orion.cli.doctor import doctor

    return doctor(as_json=options.json, clears=options.clear_cache)


def _audit(options: Namespace) -> int:
    from orion.cli.audit.command import audit

    return audit(options)


def _add_sizes(command: ArgumentParser) -> None:
    _add_pairs(command, "--shape", "A=1000x1000", "the shape of an array, sparse ones too")
    _add_pairs(command, "--sparse", "A=2", "A is sparse, with so many keys")
    _add_pairs(command, "--elements", "A=1000000", "the number of elements of a sparse array")
    _add_pairs(command, "--dtype", "A=float32", "the dtype of an array, or of a scalar")
    _add_pairs(command, "--integer", "n=10", "the value of an integer argument")
    command.add_argument("--workers", type=int, metavar="N", help="plan for N workers")


def _add_pairs(parser: ArgumentParser, option: str, example: str, words: str) -> None:
    """An option that may be given several times, each for one argument of the loops."""
    parser.add_argument(option, metavar=example, help=words, action="append", default=[])


@dataclass(frozen=True, slots=True)
class Asked:
    """The functions of the file at `path` that are asked for, by name."""

    path: Path
    loaded: LoadedFile
    functions: dict[str, AnyFunction]


def _loaded(options: Namespace, targets: Sequence[str]) -> tuple[list[Asked], Given, bool]:
    """Return the functions of the targets, the given facts about their arguments, and whether a file could not be read.

    With several files, those that cannot be read, or have no loops, are reported and skipped.
    """
    if options.workers is not None and options.workers < 1:
        raise UsageError(f"--workers {options.workers}: give 1 or more")
    asked: list[Asked] = []
    is_broken = False
    for target in targets:
        try:
            path, name = _target(target)
            loaded = load_functions(path, parallel_for)
            asked.append(Asked(path, loaded, _chosen(loaded, path, name)))
        except (LoadError, UsageError) as error:
            if len(targets) == 1:
                raise
            is_broken |= isinstance(error, LoadError) or bool(name)
            print(f"orion: {error}", file=sys.stderr)
    functions = [(name, function) for one in asked for name, function in one.functions.items()]
    if not functions:
        raise UsageError(f"there is no loop in {', '.join(targets)}")
    parameters = {name for _, function in functions for name in inspect.signature(function).parameters}
    return asked, read_given(options, [name for name, _ in functions], parameters, _workers(options)), is_broken


def _stages(options: Namespace) -> int:
    (asked,), given, _ = _loaded(options, [options.target])
    loaded, failed = asked.loaded, False
    for name, function in asked.functions.items():
        try:
            types = _types(function, _annotated(loaded.definitions[name]), given)
            typed, plan = _typed_plan(function, types, given)
            source = parse_function(function.__wrapped__)
            show(stages_text(source, types, typed.variants, plan))
        except (OrionError, ValueError) as error:
            failed = True
            print(f"{name}: {_refusal(error, name, loaded)}", file=sys.stderr)
    return int(failed)


def _explain(options: Namespace) -> int:
    asked, given, is_broken = _loaded(options, options.targets)
    plans, refusals = _plans(asked, given)
    if options.sarif is None or str(options.sarif) != "-":
        _print(plans, options)
    if options.sarif:
        _write_sarif(options.sarif, plans, refusals)
    if options.html:
        _write(options.html, _page(plans))
    if options.svg:
        _write_pictures(options.svg, plans)
    is_serial = any(not plan.is_parallel for plan in plans)
    if options.fix or options.diff:
        mends = _mend(asked, given, writes=options.fix)
        if options.fix:
            planned = [plan for one in mends for plan in one.planned]
            serial = sum(not plan.is_parallel for plan in (*plans, *planned))
            is_serial = serial > sum(len(one.functions) for one in mends)
            refusals = refusals[len(planned) :]
    return 2 if is_broken else 1 if refusals or (options.check and is_serial) else 0


def _mend(asked: Iterable[Asked], given: Given, *, writes: bool) -> list[Mended]:
    """Mend the functions that are asked for, file by file."""

    def plan_in(loaded: LoadedFile, name: str) -> Plan:
        function = loaded.functions[name]
        assert isinstance(function, ParallelFunction)
        return plan_function(function, loaded.definitions[name], given)

    files: dict[Path, list[str]] = {}
    for one in asked:
        names = files.setdefault(one.path, [])
        names += [name for name in one.functions if name not in names]
    return [mend_file(path, names, plan_in, writes=writes) for path, names in files.items()]


def _target(target: str) -> tuple[Path, str]:
    """The file and the function of "FILE[:FUNCTION]"; a colon that is part of the file's name counts as that."""
    if Path(target).exists() or ":" not in target:
        return Path(target), ""
    file, _, name = target.rpartition(":")
    return Path(file), name


def _chosen(loaded: LoadedFile, path: Path, name: str) -> dict[str, AnyFunction]:
    for hidden, place in loaded.hidden:
        if name in ("", hidden):
            note = "is defined inside a function or class, and is known only when that runs"
            print(f"orion: {place}: passing over `{hidden}`: it {note}", file=sys.stderr)
    functions = {name: found for name, found in loaded.functions.items() if isinstance(found, ParallelFunction)}
    if not functions:
        raise UsageError(f"{path} has no function decorated with orion.parallel_for at its top level")
    if not name:
        return functions
    if name not in functions:
        has = f"{path} has no decorated function `{name}`; it has {', '.join(functions)}"
        raise UsageError(f"{has}{similar(name, functions)}")
    return {name: functions[name]}


def _workers(options: Namespace) -> int:
    """The workers that loops are planned for: those of --workers, or as the variables of the environment say."""
    if options.workers is not None:
        return int(options.workers)
    try:
        workers, _ = planned_workers()
    except ArgumentError as error:
        raise UsageError(LABEL.sub("; ", str(error))) from None
    return workers


LABEL = re.compile(r"\n  (?:why|help): +")
"""Where the parts of an error message begin."""


# ---------------------------------------------------------------- plans


def plan_function(function: AnyFunction, definition: ast.FunctionDef, given: Given) -> Plan:
    """Return the plan of a function: that of a call, where all sizes are given. Others are symbols.

    Raises `ArgumentError` for a shape that does not fit, and `UnsupportedLoopError` for code that cannot be compiled. A
    note on the error says which types were guessed.
    """
    annotated = _annotated(definition)
    types = _types(function, annotated, given)
    try:
        return _plan(function, types, given)
    except OrionError as error:
        note = guessed_note(types, given, annotated, str(error))
        if note and not isinstance(error, OutOfBoundsError):
            error.add_note(note)
        raise


def _plan(function: AnyFunction, types: Types, given: Given) -> Plan:
    return _typed_plan(function, types, given)[1]


def _typed_plan(function: AnyFunction, types: Types, given: Given) -> tuple[Typed, Plan]:
    """Return the types and the plan of a function.

    Where all sizes are then known, numbers that the user does not give are their defaults, as in a call.
    """
    numbers = _default_numbers(function, given)
    if numbers and all(isinstance(kind, ScalarType) or name in given.shapes for name, kind in types.items()):
        typed, sizes = _typed_sizes(function, types, given, numbers)
        if not sizes.symbolic:
            return _checked_plan(typed, sizes)
    return _checked_plan(*_typed_sizes(function, types, given, {}))


def _typed_sizes(function: AnyFunction, types: Types, given: Given, numbers: Defaults) -> tuple[Typed, Sizes]:
    words = {name: value for name, value in _default_words(function).items() if name not in types}
    preparation = Preparation(function.__wrapped__, function.options, defaults=numbers)
    constants = preparation.constants
    types = {name: kind for name, kind in types.items() if name not in constants}
    shapes: Shapes = {name: given.shapes[name] for name in types if name in given.shapes}
    shapes = {**shapes, **argument_types(preparation.arrays_outside())[1]}
    typed, shapes = preparation.typed_for(types, shapes, given.integers, words)
    integers = {name: given.integers[name] for name in typed.parameters if name in given.integers}
    counts = {name: given.elements[name] for name in types if name in given.elements}
    dense = all(isinstance(kind, ScalarType) or name in shapes for name, kind in types.items())
    is_call = dense and not counts and set(typed.parameters) <= integers.keys()
    return typed, typed.all_sizes(Sizes(shapes, integers, counts, given.workers, symbolic=not is_call))


def _checked_plan(typed: Typed, sizes: Sizes) -> tuple[Typed, Plan]:
    plan = planned(typed, sizes, {})
    check_sizes(typed, plan.sizes)
    plan.check_bounds()
    return typed, plan


def _default_words(function: AnyFunction) -> Words:
    """The parameters that are strings or None where they are not given."""
    parameters = inspect.signature(function.__wrapped__).parameters.values()
    return words_in({one.name: one.default for one in parameters if one.default is not one.empty})


def _default_numbers(function: AnyFunction, given: Given) -> Defaults:
    """Return the numbers among the defaults of those parameters that the user says nothing about."""
    told = {*given.integers, *given.dtypes, *given.shapes, *given.sparse}
    parameters = inspect.signature(function.__wrapped__).parameters.values()
    found = {one.name: one.default for one in parameters if one.name not in told}
    return {name: value for name, value in found.items() if type(value) in (int, float, bool)}


def _types(function: AnyFunction, annotated: dict[str, str], given: Given) -> Types:
    told = {*given.shapes, *given.sparse, *given.dtypes, *given.integers}
    words = {name: value for name, value in _default_words(function).items() if name not in told}
    parsed = with_options(parse_function(function.__wrapped__), words)
    known = Known(
        ranks={name: len(shape) for name, shape in given.shapes.items() if name not in given.sparse},
        sparse=given.sparse,
        dtypes=given.dtypes,
        scalars=dict.fromkeys(given.integers, "int") | annotated,
    )
    outside, _ = argument_types(Preparation(function.__wrapped__, function.options).arrays_outside())
    types = {**guess_types(parsed, known), **outside}
    refuse_misfits(types, given)
    return types


def _annotated(definition: ast.FunctionDef) -> dict[str, str]:
    """The parameters annotated as Python scalars, with their types."""
    head = definition.args
    return {
        argument.arg: argument.annotation.id
        for argument in (*head.posonlyargs, *head.args, *head.kwonlyargs)
        if isinstance(argument.annotation, ast.Name) and argument.annotation.id in ("int", "float", "bool")
    }


def _plans(asked: Iterable[Asked], given: Given) -> tuple[list[Plan], list[Refusal]]:
    """The plans, and why functions have none; that goes to the standard error stream too."""
    plans, refusals = [], []
    for one in asked:
        for name, function in one.functions.items():
            try:
                plans.append(plan_function(function, one.loaded.definitions[name], given))
            except (OrionError, ValueError) as error:
                message = _refusal(error, name, one.loaded)
                refusals.append(Refusal(message, _place_of(message, function), _fix(error, one.path)))
                print(f"{name}: {message}", file=sys.stderr)
    return plans, refusals


def _fix(error: Exception, path: Path) -> tuple[Replacement, ...]:
    """Return the replacements that an error proposes for its file."""
    found = error.replacement if isinstance(error, OrionError) else None
    if found is None or found.span.file != str(path) or found.span.inlined:
        return ()
    return fixes_of(read_file(path).text, found)


def _place_of(message: str, function: AnyFunction) -> Span:
    """The place that a message begins with, or that of the function."""
    code = function.__wrapped__.__code__
    found = re.match(rf"{re.escape(code.co_filename)}:(\d+): ", message)
    line = int(found[1]) if found else code.co_firstlineno
    return Span(code.co_filename, line, 0, line, len(linecache.getline(code.co_filename, line).rstrip()))


def _refusal(error: OrionError | ValueError, name: str, loaded: LoadedFile) -> str:
    """Return what to say of an error that a plan met; raises one that is no refusal."""
    if not (isinstance(error, OrionError) or is_of_user(error)):
        raise error
    message = of_names_not_run(str(error), name, loaded.not_run)
    is_as_it_is = isinstance(error, OrionError) and error.is_for_numba and message == str(error)
    return "\n".join([message, *getattr(error, "__notes__", ()), *([AS_IT_IS] if is_as_it_is else ())])


# ---------------------------------------------------------------- what is shown


def _print(plans: Sequence[Plan], options: Namespace) -> None:
    if options.json:
        print(json.dumps([plan.to_dict() for plan in plans], indent=2))
    elif plans:
        print("\n\n\n".join(plan.text() if options.all else str(plan) for plan in plans))


def _page(plans: Sequence[Plan]) -> str:
    views = "\n".join(plan._repr_html_() for plan in plans)
    head = '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Plans</title>'
    return f"{head}\n<body>\n{views}\n</body></html>\n"


def _write_sarif(path: Path, plans: Sequence[Plan], refusals: Sequence[Refusal]) -> None:
    pages = {code: page_of(code) or "" for code in CODES}
    log = sarif_log([plan.function for plan in plans], refusals, __version__, pages, Path.cwd())
    text = f"{json.dumps(log, indent=2)}\n"
    print(text, end="") if str(path) == "-" else _write(path, text)


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
