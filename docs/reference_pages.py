"""The parts of the reference that the code itself holds, written before each build into folders that git ignores.

- `reference/interface/`: a page for each public name, and each type of a result, by autodoc
- `reference/reasons/`: a page for each reason's code, from `orion/reasons.md`
- `reference/command-line.markdown`: the commands and their options, from the parser of the command line

What is written has the endings `.rst` and `.markdown`: `*.md` are pages that somebody wrote.
"""

import inspect
import re
from argparse import HelpFormatter, _SubParsersAction
from importlib import import_module
from itertools import chain
from pathlib import Path
from textwrap import indent
from types import FunctionType

from docstrings import TYPES, as_written, full_name, restructured
from sphinx.pycode import ModuleAnalyzer

import orion
from orion.cli import cli
from orion.cli.pages import page_of
from orion.reasons import CODES

REFERENCE = Path(__file__).resolve().parent / "reference"

GROUPS = {
    "Loops and plans": ("parallel_for", "ParallelFunction", "Plan", "Verification"),
    "Where loops run": ("init", "session", "scale", "shutdown"),
    "Dense arrays": ("array", "zeros", "ones", "full", "uniform", "normal", "DistArray", "DenseArray"),
    "Sparse arrays": ("sparse", "from_scipy", "from_pandas", "from_arrow", "SparseArray"),
    "Files": ("read_csv", "read_parquet", "read_libsvm", "text_file", "load", "checkpoint", "restore"),
    "In loops": ("random", "accumulator", "freeze"),
    "Late updates and copies": ("buffer", "pacing", "replicate", "elastic", "local_sgd"),
    "Times": ("profile", "Profile", "report"),
}
"""Public names by what they are for. Errors and warnings are found by their classes, others come last."""

MEMBERS = {
    "ParallelFunction": (
        "plan", "explain", "verify", "debug", "serial", "last_run", "replay", "measure", "kernel_source", "py_func",
    ),
    "Plan": (
        "is_parallel", "runs_on", "strategy", "parallelism", "conditions", "considered", "loops", "only",
        "dependences", "verdicts", "graph", "reasons", "placements", "schedule", "serial_order", "check", "estimate",
        "scaling", "text", "to_dict", "to_json", "to_mermaid", "save_svg",
    ),
    "DistArray": ("shape", "dtype", "ndim", "nbytes", "to_numpy", "save"),
    "DenseArray": ("view", "map", "shuffle", "plan_shuffle", "last_shuffle"),
    "SparseArray": (
        "nnz", "coords", "values", "to_scipy", "histogram", "map", "map_keys", "filter", "group_by", "shuffle_keys",
        "key_permutation", "shuffle", "plan_shuffle", "last_shuffle", "lines", "materialize",
    ),
    "LoopPlan": ("space", "time", "dependences", "parts"),
    "Verdict": ("is_parallel",),
    "Schedule": ("tiles", "serial_tiles"),
    "Estimate": ("speedup", "memory_per_worker", "best", "to_dict", "to_json"),
    "LastRun": (
        "workers", "worker_counts", "serial_order", "seconds", "times", "bytes_moved", "late", "sent", "fetched",
        "shuffled", "brought", "pulls",
    ),
    "FetchedRows": ("hidden",),
}  # fmt: skip
"""What programs use of classes that also have methods for Orion's own parts, in the order of the page."""

ABOUT = ("Every public name of `import orion`. In types, `Dense` is a NumPy array or an `orion.DenseArray`.",)

ABOUT_TYPES = ("Programs get these from the functions above, and need not import them.",)

REASON_LINK = re.compile(r"\]\((?:\.\./)+orion/reasons\.md(?:#(orn\d+))?\)")


def setup(app):
    app.connect("builder-inited", lambda app: write_all(REFERENCE))
    app.connect("source-read", link_reasons)
    return {"parallel_read_safe": True}


def link_reasons(app, name, source):
    """Have links to `orion/reasons.md`, as readers of the files follow them, go to the page of the code."""
    source[0] = REASON_LINK.sub(
        lambda found: f"](/reference/reasons/{found[1].upper() if found[1] else 'index'}.markdown)", source[0]
    )


def write_all(folder):
    """Write all pages, and remove those that are no longer made. What has not changed keeps its time."""
    pages = dict(chain(interface_pages(), reason_pages(), [("command-line.markdown", command_line_page())]))
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for part in ("interface", "reasons"):
        for path in (folder / part).iterdir():
            if f"{part}/{path.name}" not in pages:
                path.unlink()


# ---------------------------------------------------------------- the interface


def interface_pages():
    """The list of all public names, and a page for each."""
    yield "interface/index.markdown", interface_index()
    for name in orion.__all__:
        yield f"interface/{name}.rst", page(f"orion.{name}", directive(name, f"orion.{name}", getattr(orion, name)))
    for name in TYPES:
        yield f"interface/{name}.rst", page(name, type_directive(name))


def groups():
    """Public names by group: each name is in one."""
    named = set(chain(*GROUPS.values()))
    rest = [name for name in orion.__all__ if name not in named]
    errors = [name for name in rest if is_a(name, Exception) and not is_a(name, Warning)]
    warnings = [name for name in rest if is_a(name, Warning)]
    others = [name for name in rest if name not in errors + warnings]
    return {**GROUPS, "Errors": errors, "Warnings": warnings, **({"Others": others} if others else {})}


def is_a(name, kind):
    value = getattr(orion, name)
    return isinstance(value, type) and issubclass(value, kind)


def interface_index():
    lines = ["# The interface", "", *ABOUT, ""]
    for title, names in groups().items():
        rows = [f"- [`orion.{name}`]({name}.rst): {first_sentence(docstring(name))}" for name in names]
        lines += section(title, rows, names)
    rows = [f"- [`{name}`]({name}.rst): {first_sentence(type_docstring(name))}" for name in TYPES]
    lines += section("Types of results", [*ABOUT_TYPES, "", *rows], TYPES)
    return "\n".join(lines)


def section(title, rows, pages):
    """A heading, the rows below it, and the list of pages that they lead to."""
    return [f"## {title}", "", *rows, "", ":::{toctree}", ":hidden:", "", *pages, ":::", ""]


def first_sentence(text):
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s+(?=[A-Z`])", paragraph)[0].removesuffix(":")


def docstring(name):
    """The docstring of a public name."""
    value = getattr(orion, name)
    return inspect.getdoc(value if inspect.isroutine(value) or isinstance(value, type) else type(value)) or ""


def type_docstring(name):
    """The docstring of a class, or the text below the line that gives another type its name."""
    value = getattr(import_module(TYPES[name]), name)
    if isinstance(value, type):
        return inspect.getdoc(value)
    return " ".join(ModuleAnalyzer.for_module(TYPES[name]).find_attr_docs()["", name])


def page(title, shown):
    return f"{title}\n{'=' * len(title)}\n\n{shown}\n"


def type_directive(name):
    """The directives of autodoc that show a type of results."""
    value = getattr(import_module(TYPES[name]), name)
    if not isinstance(value, type):
        return f".. autodata:: {full_name(name)}\n   :no-value:"
    return directive(name, full_name(name), value)


def directive(name, full, value):
    """The directives of autodoc that show an object, `full` being its name with its module."""
    if not isinstance(value, type) and not inspect.isroutine(value):
        return of_callable_object(name, value)
    if not isinstance(value, type):
        return f".. autofunction:: {full}"
    if issubclass(value, Exception):
        return f".. autoexception:: {full}\n   :show-inheritance:"
    if name in TYPES and name not in MEMBERS:
        return f".. autoclass:: {full}"
    if name not in MEMBERS:
        return f".. autoclass:: {full}\n   :members:"
    members = "\n".join(f"   .. auto{kind_of(value, one)}:: {one}" for one in MEMBERS[name])
    return f".. autoclass:: {full}\n\n{members}"


def kind_of(owner, member):
    found = inspect.getattr_static(owner, member, None)
    return "method" if isinstance(found, FunctionType | staticmethod | classmethod) else "attribute"


def of_callable_object(name, value):
    """An object that is called like a function, and has functions of its own."""
    kind = type(value)
    head = described(f"orion.{name}{as_written(kind.__call__, is_method=True)}", kind)
    inner = {one: getattr(kind, one) for one in vars(kind) if not one.startswith("_")}
    others = [described(f"orion.{name}.{one}{as_written(method)}", method) for one, method in inner.items()]
    return "\n\n".join([head, *others])


def described(signature, value):
    """The directive of a function with this signature, and the docstring of `value`."""
    text = restructured(inspect.getdoc(value))
    return f".. py:function:: {signature}\n\n{indent(text, ' ' * 3)}"


# ---------------------------------------------------------------- codes of reasons


def reason_pages():
    """The list of all codes, and a page for each."""
    introduction = reasons_text().split("\n## ")[0].strip()
    rows = [f"- [{code}]({code}.markdown): {CODES[code].title}" for code in CODES]
    tree = [":::{toctree}", ":hidden:", "", *CODES, ":::"]
    yield "reasons/index.markdown", "\n".join([introduction, "", *rows, "", *tree, ""])
    for code in CODES:
        yield f"reasons/{code}.markdown", f"# {page_of(code)}\n"


def reasons_text():
    return (Path(orion.__file__).parent / "reasons.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------- the command line


def command_line_page():
    """All commands, each with its usage and its options."""
    parser = cli._parser()
    lines = ["# The command line", "", "`orion` and `python -m orion` are the same program.", ""]
    for name, command in commands(parser).items():
        lines += [f"## `orion {name}`", "", filled(command.description), "", "```text", *usage(command), "```", ""]
        lines += ["| argument | meaning |", "|---|---|", *(row(one) for one in command._actions), ""]
        lines += [filled(command.epilog), ""] if command.epilog else []
    return "\n".join(lines)


def commands(parser):
    """The parsers of the commands, by name."""
    (found,) = (one for one in parser._actions if isinstance(one, _SubParsersAction))
    return found.choices


def usage(command):
    """The lines of a command's usage, as wide on every terminal."""
    formatter = HelpFormatter(command.prog, width=76)
    formatter.add_usage(command.usage, command._actions, command._mutually_exclusive_groups, prefix="")
    return formatter.format_help().strip().splitlines()


def row(action):
    """A row of the table of arguments."""
    value = action.metavar if action.nargs != 0 else ""
    names = [f"{name} {value}".strip() for name in action.option_strings] or [value or action.dest]
    shown = ", ".join(f"`{name}`" for name in names).replace("|", r"\|")
    again = "; once for each of them" if isinstance(action.default, list) else ""
    return f"| {shown} | {action.help}{again} |"


def filled(text):
    """A paragraph whose options and names are code."""
    return re.sub(r"(?<![\w-])(--[a-z]+|[A-Z]+_[A-Z]+(?:=[\w,-]+)?)(?![\w-])", r"`\1`", " ".join(text.split()))
