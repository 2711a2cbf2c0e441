"""Docstrings of this project as reStructuredText.

They are written to be read as they stand: words in single backquotes are code, indented blocks and doctests are
examples, lines that begin with "- " are lists, and all else is text. None of that is markup of Sphinx, which gets it
here (`autodoc-process-docstring`), with links from names such as `orion.buffer` to their pages.
"""

import ast
import inspect
import re
from itertools import groupby
from textwrap import dedent

import orion

TYPES = {
    "LoopPlan": "orion.plan.plan",
    "Dependence": "orion.dependence.access",
    "Access": "orion.dependence.access",
    "Verdict": "orion.plan.plan",
    "Reason": "orion.reasons",
    "Considered": "orion.plan.plan",
    "Placement": "orion.cost.placement",
    "Schedule": "orion.schedule.schedule",
    "Ints": "orion.schedule.schedule",
    "Estimate": "orion.estimate",
    "LoopEstimate": "orion.estimate",
    "Scaling": "orion.estimate",
    "Measurement": "orion.measured",
    "LastRun": "orion.last_run",
    "LoopTimes": "orion.last_run",
    "LateUpdates": "orion.last_run",
    "Pulls": "orion.last_run",
    "SentUpdates": "orion.runtime.profile.records",
    "FetchedRows": "orion.runtime.profile.records",
    "ShuffledRows": "orion.runtime.profile.records",
    "BroughtCopies": "orion.runtime.profile.records",
    "Bottleneck": "orion.inspect.profiles.bottleneck",
}
"""Types of what public functions return, with their modules: programs use the values without importing the types."""

CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
MARKUP = re.compile(r"([\\*_|])")
PAGE = re.compile(r"\bdocs/([a-z/-]+)\.md\b")
ITEM = "- "


def setup(app):
    app.connect("autodoc-process-docstring", rewrite)
    app.connect("autodoc-process-signature", show_as_written)
    app.connect("missing-reference", link_type)
    return {"parallel_read_safe": True}


def rewrite(app, what, name, obj, options, lines):
    """Replace the lines of a docstring, in place, by the same as reStructuredText."""
    lines[:] = restructured("\n".join(lines)).splitlines()


def full_name(name):
    """The name of a type in `TYPES` with that of its module."""
    return f"{TYPES[name]}.{name}"


def link_type(app, env, node, shown):
    """Link a type's short name, as signatures have it, to its page."""
    name = node.get("reftarget")
    if node.get("refdomain") != "py" or name not in TYPES:
        return None
    return env.domains["py"].resolve_xref(env, node["refdoc"], app.builder, "obj", full_name(name), node, shown)


def show_as_written(app, what, name, obj, options, signature, result):
    """Functions have the types that their source has, and classes no arguments: functions make their objects."""
    if signature and what in ("class", "exception"):
        return "", None
    if signature and what in ("function", "method"):
        arguments, _, result = as_written(obj, what == "method").partition(" -> ")
        return arguments, result or None
    return None


class Written(str):
    """A text that stands for itself where signatures are printed."""

    __slots__ = ()
    __repr__ = str.__str__


def as_written(function, is_method=False):
    """The signature of a function, with types as in its source, and short names of defaults that are types."""
    whole = inspect.signature(inspect.unwrap(function))
    parameters = [
        one.replace(
            annotation=written(one.annotation),
            default=one.default if isinstance(one.default, str) else written(one.default),
        )
        for one in whole.parameters.values()
        if not (is_method and one.name == "self")
    ]
    return str(whole.replace(parameters=parameters, return_annotation=written(whole.return_annotation)))


def written(value):
    if isinstance(value, str):
        return Written(value)
    if isinstance(value, type) and value is not inspect.Signature.empty:
        return Written(value.__name__ if value.__module__ == "builtins" else f"np.{value.__name__}")
    return value


def restructured(text):
    r"""Return a docstring as reStructuredText.

    >>> print(restructured("Sums `a[i]` over *all* i:\n\n    total += a[i]"))
    Sums ``a[i]`` over \*all\* i:
    <BLANKLINE>
    .. code-block:: python
    <BLANKLINE>
        total += a[i]
    <BLANKLINE>
    """
    return "\n\n".join(block(lines) for lines in blocks(text.expandtabs().splitlines())) + "\n"


def blocks(lines):
    """The lines in blocks: paragraphs, lists and sections, doctests, and indented examples with their empty lines."""
    found = []
    for is_empty, part in groupby(lines, key=lambda line: not line.strip()):
        part = list(part)
        if is_empty:
            continue
        for one in without_blank_between(part):
            if found and is_example(one) and is_example(found[-1]):
                found[-1] += ["", *one]
            else:
                found.append(one)
    return found


def without_blank_between(lines):
    """Text and the doctest or list that begins in the line after it."""
    for at in range(1, len(lines)):
        begins = lines[at].startswith(">>> ") or (lines[at].startswith(ITEM) and lines[at - 1].endswith(":"))
        if begins and not lines[0].startswith((">>> ", ITEM)):
            return [lines[:at], lines[at:]]
    return [lines]


def is_example(lines):
    return all(line.startswith("    ") or not line for line in lines)


def block(lines):
    """A block as reStructuredText."""
    if is_example(lines):
        code = dedent("\n".join(lines))
        return f".. code-block:: {language(code)}\n\n" + "\n".join(f"    {line}".rstrip() for line in code.splitlines())
    if lines[0].startswith(">>> "):
        return "\n".join(lines)
    if len(lines) > 1 and lines[0].endswith(":") and is_example(lines[1:]):
        return "\n".join([inline(lines[0]), "", *items(dedent("\n".join(lines[1:])).splitlines())])
    return inline("\n".join(lines))


def items(lines):
    """The entries of a section such as `Args:`, as a list."""
    return [inline(f"  {line.strip()}" if line.startswith(" ") else f"{ITEM}{line}") for line in lines]


def language(code):
    try:
        ast.parse(code)
    except SyntaxError:
        return "text"
    return "python"


def inline(text):
    """Text whose code is marked as such, and in which nothing else is markup."""
    parts, at = [], 0
    for found in CODE.finditer(text):
        before, after = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
        parts += [escaped(text[at : found.start()]), "\\ " if before.strip() else "", code_of(found[2])]
        parts += ["\\ " if after.strip() else ""]
        at = found.end()
    return "".join([*parts, escaped(text[at:])])


def escaped(text):
    return PAGE.sub(r":doc:`/\1`", MARKUP.sub(r"\\\1", text))


def code_of(text):
    name = text.removeprefix("orion.")
    if name != text and name in orion.__all__:
        return f":py:obj:`{text}`"
    if text in TYPES:
        return f":py:obj:`{text} <{full_name(text)}>`"
    return f"``{' '.join(text.split())}``"
