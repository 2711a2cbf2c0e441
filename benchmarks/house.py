"""The structure of the compiler in numbers: `python -m benchmarks.house`, for this tree or `--tree` of another.

Static figures are read from the text of the files, those of planning are counted while plans are made:

`lines`: lines under `orion/` that hold code, without blanks, comments and docstrings.
`circles`: sets of files that import one another, directly or by way of others.
`arrows back`: imports between two folders against the direction that most imports between these two have.
`optional fields`: fields of the loop plan with a default, which is None, False or empty where they do not apply.
`properties`: those of the loop plan that answer yes or no.
`visits`: IR nodes that are looked at in one `plan()`, divided by the nodes of the source and of the planned program. A
node is looked at when a function of `orion` is called with it, or a generator over nodes has come to it.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import threading
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import networkx

ROOT = Path(__file__).parent.parent
LOOP_PLANS = (
    "LoopPlan", "Tiled", "Uncut",
    "Written", "Reordered", "ReorderedSingle", "Fused", "Single", "Fill", "Member", "Inside", "Merged",
    "AnalysedLoop", "AsWritten", "AsOne", "InBand", "InTimeTiles", "OutsideBands",
    "LoopNest", "OfSource", "OfStatements", "OfFilling", "OfBox", "BesideBoxes",
)  # fmt: skip
REPEATED = ("collect_references", "scalar_roles", "model_loop", "study_nest", "study_loop", "analyse_loop")
KERNELS = ("durbin", "gemm", "gramschmidt", "correlation", "seidel-2d", "fdtd-2d")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the structure of the compiler.")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the folder that has orion/")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument("--count-here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.count_here:
        print(json.dumps(counted(options.tree)))
        return
    figures = structure(options.tree) | of_planning(options.tree)
    print(json.dumps(figures) if options.json else "\n".join(f"{name:36}{value}" for name, value in figures.items()))


# ---------------------------------------------------------------- the text of the files


def structure(tree: Path) -> dict[str, Any]:
    """The figures that are read from the files."""
    files = {dotted(path, tree): path for path in sorted((tree / "orion").rglob("*.py"))}
    arrows = [(name, other) for name, path in files.items() for other in imported(path, files)]
    lengths = [lines_of_code(path) for path in files.values()]
    fields, properties = of_loop_plans(files.values())
    return {
        "files": len(files),
        "lines": sum(lengths),
        "circles": sum(len(part) > 1 for part in networkx.strongly_connected_components(networkx.DiGraph(arrows))),
        "arrows back": arrows_back(arrows),
        "optional fields": f"{len(fields)}: {' '.join(fields)}",
        "properties": f"{len(properties)}: {' '.join(properties)}",
    }


def dotted(path: Path, tree: Path) -> str:
    parts = path.relative_to(tree).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def lines_of_code(path: Path) -> int:
    """Lines that hold a token which is neither a comment nor a docstring."""
    text = path.read_text()
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            lines |= set(range(token.start[0], token.end[0] + 1)) if token.string else set()
    return len(lines - docstrings(ast.parse(text)))


def docstrings(module: ast.Module) -> set[int]:
    """The lines of all docstrings."""
    found: set[int] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            text = node.body[0]
            found |= set(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return found


def imported(path: Path, files: dict[str, Path]) -> Iterator[str]:
    """The files of `orion` that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in files else node.module for name in names if {name, node.module} & set(files))


def arrows_back(arrows: list[tuple[str, str]]) -> int:
    """Imports between two folders in the direction that fewer of them have."""
    between = Counter((folder(start), folder(end)) for start, end in arrows if folder(start) != folder(end))
    return sum(min(count, between[(end, start)]) for (start, end), count in between.items() if start < end)


def folder(module: str) -> str:
    return ".".join(module.split(".")[:2])


def of_loop_plans(files: Any) -> tuple[list[str], list[str]]:
    """The names of fields with a default and of properties that are bool, of the classes of planned loops."""
    fields: list[str] = []
    properties: list[str] = []
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name in LOOP_PLANS:
                fields += [ast.unparse(one.target) for one in node.body if isinstance(one, ast.AnnAssign) and one.value]
                properties += [one.name for one in node.body if isinstance(one, ast.FunctionDef) and asks(one)]
    return fields, properties


def asks(function: ast.FunctionDef) -> bool:
    is_property = any(isinstance(one, ast.Name) and one.id == "property" for one in function.decorator_list)
    return is_property and isinstance(function.returns, ast.Name) and function.returns.id == "bool"


# ---------------------------------------------------------------- planning


def of_planning(tree: Path) -> dict[str, Any]:
    """The figures that are counted while plans are made, in a process of its own that imports the tree's `orion`."""
    command = [sys.executable, str(Path(__file__).resolve()), "--count-here", "--tree", str(tree)]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def counted(tree: Path) -> dict[str, Any]:
    """Visits per node, and the calls of what analyses are made of, for some kernels of PolyBench."""
    import warnings

    import orion
    from benchmarks.polybench.kernels import KERNELS as ALL

    assert Path(orion.__file__).resolve().is_relative_to(tree.resolve()), orion.__file__
    warnings.simplefilter("ignore", orion.SerialLoopWarning)
    chosen = [kernel for kernel in ALL if kernel.name in KERNELS]
    orion.parallel_for(chosen[0].function).plan(*chosen[0].inputs("tiny").values())  # imports everything
    figures: dict[str, Any] = {}
    for kernel in chosen:
        visits, calls, plan = visited(lambda k=kernel: orion.parallel_for(k.function).plan(*k.inputs("tiny").values()))
        figures[f"visits, {kernel.name}"] = f"{visits / nodes_of(plan):.1f} per node ({visits} in all)"
        figures[f"calls, {kernel.name}"] = " ".join(f"{name} {calls[name]}" for name in REPEATED if calls[name])
    return figures


def visited(plan: Any) -> tuple[int, Counter[str], Any]:
    """Nodes that one `plan()` looks at, how often each function was called, and the plan.

    Isl runs in a thread of its own, so that the threads that start meanwhile are watched too. `walk` and `every` go
    over tuples that are kept: what they give is counted where they are called.
    """
    ir = ir_module()
    calls: Counter[str] = Counter()
    visits = 0

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal visits
        if event == "call" and "/orion/" in frame.f_code.co_filename:
            code = frame.f_code
            calls[code.co_name] += 1
            if code.co_name not in ("walk", "_below", "children", "answer"):  # `answer` gives what a node keeps
                given = code.co_varnames[: code.co_argcount]
                visits += any(isinstance(frame.f_locals.get(name), ir.NODE_CLASSES) for name in given)

    def counting(given: Any) -> Any:
        def counted(*arguments: Any) -> Iterator[Any]:
            nonlocal visits
            for part in given(*arguments):
                visits += 1
                yield part

        return counted

    hooked = [
        (module, name, given)
        for name in ("walk", "every")
        if (given := getattr(ir, name, None)) is not None
        for module in list(sys.modules.values())
        if getattr(module, name, None) is given
    ]
    for module, name, given in hooked:
        setattr(module, name, counting(given))
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        made = plan()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        for module, name, given in hooked:
            setattr(module, name, given)
    return visits, calls, made


def nodes_of(plan: Any) -> int:
    """The nodes of the source and of the program that the plan has."""
    ir = ir_module()
    program = plan.function.program
    functions = {id(one): one for one in (program.function, getattr(plan, "source", program.function))}
    loops = [part for loop in plan.function.loops for part in loop.nest.body]
    bodies = [part for function in functions.values() for part in function.body]
    return sum(1 for part in (*bodies, *loops) for _ in ir.walk(part))


def ir_module() -> Any:
    """The module of the loop language, wherever this tree has it."""
    import importlib

    for name in ("orion.ir.nodes", "orion.loop.ir"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise ModuleNotFoundError("orion has no module of IR nodes where this benchmark looks for it")


if __name__ == "__main__":
    main()
