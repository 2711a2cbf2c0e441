"""A plan as HTML for a notebook: the source line by line, a picture, the conflicts, the data, what stands in the way.

No JavaScript, nothing fetched, nothing run: the text form is always there, inside a fold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from orion.inspect.html.annotate import source_table
from orion.inspect.html.style import STYLE
from orion.inspect.pictures.svg import plan_svg
from orion.inspect.text.alike import Section
from orion.inspect.text.conflicts import Conflict, told_conflicts
from orion.inspect.text.names import as_shown
from orion.inspect.text.order import order_in_words
from orion.inspect.text.parts import Told, new_order, tiles_in_words
from orion.inspect.text.relaxed import relaxed_in_words
from orion.inspect.text.telling import (
    NO_CONFLICTS,
    SENT,
    SHARED,
    Blocker,
    blockers,
    but_for,
    conditions,
    considered,
    copied_in,
    data,
    exits,
    flattened,
    fused_with,
    has_sent,
    inductions,
    makes,
    notes,
    private_arrays,
    reductions,
    runs_on,
    scans,
    shuffled,
    signature,
    why_not,
)  # fmt: skip
from orion.inspect.text.text import WHERE_ALL_ARE, plan_text, quoted, sections
from orion.inspect.text.where import verdict_and_details
from orion.inspect.text.words import (
    counted,
    iterations_in_words,
    lines_in_words,
    place,
)
from orion.inspect.tree.html import tree_table
from orion.inspect.tree.options import option_rows
from orion.inspect.tree.text import totals
from orion.inspect.tree.view import MOST, Tree, tree_of
from orion.ir.function import in_users_words
from orion.plan.parallelism import Extent, parallelism
from orion.plan.plan import FunctionPlan, Inspected, LoopPlan, Reordered, ReorderedSingle
from orion.plan.shares import by_cost, costliest_part, shares
from orion.plan.source_plans import loops_of_source
from orion.reasons import CODES
from orion.schedule.schedule import Schedule

BADGES = {
    Extent.NO_LOOP: "o-serial",
    Extent.PARALLEL: "o-parallel",
    Extent.TOO_SMALL: "o-parallel",
    Extent.SERIAL_HERE: "o-serial",
    Extent.PARTLY: "o-partly",
    Extent.SERIAL: "o-serial",
}
"""How a verdict is coloured."""

PICTURES = 30_000
"""The characters that pictures may have: notebooks keep every page."""


def plan_html(plan: FunctionPlan, pictures: Sequence[Schedule | None], tree: Tree | None = None) -> str:
    """The plan of a function as a piece of HTML: first the `tree` of its loops, made from the plan alone where none is
    given. `pictures` has the schedule of each loop of the source (`orion.plan.source_plans.loops_of_source`), None
    where there is none."""
    tree = tree or tree_of(plan)
    kind = BADGES[parallelism(plan).extent]
    badge, where = verdict_and_details(plan, tree.shared)
    parts = _sections(plan, pictures)
    page = (
        f'<div class="orion-plan"><style>{STYLE}</style>'
        f"<h3><code>{escape(signature(plan))}</code> {_badge(badge, kind)}</h3>"
        f"<p>{_prose(where.lstrip('; :') + totals(tree))}</p>{tree_table(tree)}"
        f"{_options(tree)}{_conditions(plan)}{_makes(plan)}{_list('shuffled', shuffled(plan))}"
        f'<div class="o-scroll">{source_table(plan)}</div>{_key(plan)}{"".join(parts)}{_considered(plan)}'
        f"<details><summary>The same as text</summary><pre>{escape(plan_text(plan, tree=tree))}</pre></details></div>"
    )
    return in_users_words(page, plan.program.function)


def _badge(words: str, kind: str) -> str:
    return f'<span class="o-badge {kind}">{escape(words)}</span>'


def _key(plan: FunctionPlan) -> str:
    """What the marks in the source mean, where there are any."""
    forms = [(loop.form, loop.analysis) for loop in plan.loops]
    written = (one.origin.analysis if isinstance(one, Reordered | ReorderedSingle) else own for one, own in forms)
    if not any(analysis.dependences for analysis in written):
        return ""
    return (
        '<p class="o-faint">Marked: what different iterations have in common, '
        '<mark class="o-written">written</mark> or <mark>read</mark>.</p>'
    )


def _conditions(plan: FunctionPlan) -> str:
    return "".join(f"<p>if {_prose(condition)}</p>" for condition in conditions(plan))


def _options(tree: Tree) -> str:
    """What options would change, where there is anything."""
    rows = [(_code(option), escape(lines), _prose(how)) for option, lines, how in option_rows(tree)]
    return _table("What options would change", ("with", "loops in", "how"), rows)


def _makes(plan: FunctionPlan) -> str:
    """The arrays that the function makes, where there are any."""
    return _list("makes", makes(plan))


def _list(title: str, rows: Iterable[tuple[str, ...]]) -> str:
    items = "".join(f"<li>{escape(' '.join(row))}</li>" for row in rows)
    return f"<p>{title}</p><ul>{items}</ul>" if items else ""


def _considered(plan: FunctionPlan) -> str:
    """Other ways to run the function that were not taken, where there are any."""
    rows = [(escape(name), escape(time), _prose(why)) for name, time, why in considered(plan)]
    return _table("Considered, and not taken", ("way to run it", "predicted time", "because"), rows)


def _sections(plan: FunctionPlan, pictures: Sequence[Schedule | None]) -> Iterator[str]:
    """A section for each of the costliest loops, in textual order, and pictures as long as the page stays small: the
    costliest loop has one for sure."""
    loops, found = [*map(as_shown, loops_of_source(plan))], shares(plan)
    kept, room = by_cost(plan)[:MOST], PICTURES
    told = {section.at: section for section in sections(plan, sorted(kept))}
    drawn: dict[int, str] = {}
    for at in (one for one in kept if one in told):
        part = costliest_part(loops[at], found)
        picture = plan_svg(loops[at], pictures[at], part, plan.sizes.known)
        if len(picture) <= room or not drawn:
            drawn[at], room = picture, room - len(picture)
    yield from (_section(section, plan, drawn.get(at, "")) for at, section in told.items())
    if len(loops) > len(kept):
        yield f'<p class="o-faint">… and {counted(len(loops) - len(kept), "loop")} more: {_prose(WHERE_ALL_ARE)}</p>'


def _section(section: Section, plan: FunctionPlan, picture: str) -> str:
    """One loop, and how many more are the same."""
    loop = section.loop
    line = loop.nest.function.source.line(loop.nest.span.line).strip()
    title = f'<h3><code>{escape(line)}</code> <span class="o-place">{escape(place(loop.nest.span))}</span></h3>'
    title += "".join(f"<p>{_prose(words)}</p>" for words in section.words())
    conflicts = told_conflicts(loop)
    drawn = f'<div class="o-picture">{picture}</div>' if picture else ""
    found = _parallel(loop, plan, conflicts) if loop.is_parallel else _serial(loop, conflicts)
    return f'<section>{title}<div class="o-columns">{drawn}<div>{_facts(loop, plan)}{found}</div></div></section>'


def _facts(loop: LoopPlan, plan: FunctionPlan) -> str:
    kind = "o-parallel" if loop.is_parallel else "o-serial"
    rows = [
        ("strategy", f"{_badge(loop.strategy, kind)} {escape(tiles_in_words(loop))}"),
        ("order", _prose(order_in_words(loop, plan))),
        ("new order", "<br>".join(_told(told) for told in new_order(loop, plan))),
        ("iterations", escape(iterations_in_words(loop))),
        ("runs on", "<br>".join(map(_prose, runs_on(loop)))),
        ("fused", "<br>".join(map(_prose, fused_with(loop)))),
        ("reductions", "<br>".join(map(escape, reductions(loop)))),
        ("ends early", "<br>".join(map(_prose, exits(loop)))),
        ("scans", "<br>".join(map(_prose, scans(loop, plan)))),
        ("inductions", "<br>".join(map(_prose, inductions(loop)))),
        ("rows", "<br>".join(map(escape, flattened(loop)))),
        ("private", "<br>".join(map(escape, private_arrays(loop)))),
        ("relaxed", "<br>".join(map(escape, relaxed_in_words(loop)))),
        ("copied in", "<br>".join(map(_prose, copied_in(loop, plan)))),
        ("notes", "<br>".join(map(_prose, notes(loop)))),
    ]
    body = "".join(f'<tr><th scope="row">{name}</th><td>{words}</td></tr>' for name, words in rows if words)
    return f'<table class="o-facts"><tbody>{body}</tbody></table>'


def _told(told: Told) -> str:
    return f'<span style="margin-left:{told.depth}em">{_prose(told.words)}</span>'


# ---------------------------------------------------------------- tables


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of HTML cells under a title; nothing where there are no rows. The first cell of a row is its head."""
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in rows
    )
    if not body:
        return ""
    head = "".join(f"<th>{escape(words)}</th>" for words in heads)
    return (
        f'<h4>{escape(title)}</h4><div class="o-scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _prose(words: str) -> str:
    """Escaped text, in which what stands between backquotes is code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(words))


def _code(words: str) -> str:
    return f"<code>{escape(words)}</code>"


def _parallel(loop: LoopPlan, plan: FunctionPlan, conflicts: Sequence[Conflict]) -> str:
    name = "Dependences" if loop.ordered else "Conflicts"
    heads = ("array", "in", "written", "read")
    is_listed = isinstance(loop.tiles, Inspected)  # then it is known which elements are touched
    found = _table(name, heads, (_conflict_cells(conflict, is_listed) for conflict in conflicts))
    if not conflicts:
        found = f"<h4>{name}</h4><p>{escape(NO_CONFLICTS)}</p>"
    against = [
        (escape(names), f"no, {escape(why)} {_reason_code(reason.code)}{_prose(reason.help)}")
        for names, why, reason in why_not(loop, conflicts)
    ]
    is_sent = has_sent(loop, plan)
    places = [(_code(array), *map(escape, (where, moved)[: 1 + is_sent])) for array, where, moved in data(loop, plan)]
    title = "Data" if is_sent or loop.runs_on == 1 else f"Data: {SHARED}"
    return (
        found
        + _table("Simpler strategies, and why not", ("strategy", "possible"), against)
        + _table(title, ("array", "where it lives", SENT)[: 2 + is_sent], places)
    )


def _conflict_cells(conflict: Conflict, is_listed: bool) -> tuple[str, ...]:
    where = escape(conflict.iterations)
    if conflict.reason.message and not is_listed:
        code = _reason_code(conflict.reason.code)
        where += f'<br><span class="o-faint">{_prose(conflict.reason.message)}</span> {code}'
    return _code(conflict.array), where, _accesses(conflict.writes), _accesses(conflict.reads)


def _accesses(accesses: Iterable[tuple[str, tuple[int, ...]]]) -> str:
    return "<br>".join(f"{_code(text)} in {escape(lines_in_words(lines))}" for text, lines in accesses)


def _reason_code(code: str) -> str:
    return f'<span class="o-faint" title="{escape(CODES[code].title)}">{escape(code)}</span>'


def _serial(loop: LoopPlan, conflicts: Sequence[Conflict]) -> str:
    entries = "".join(_blocker(blocker, loop) for blocker in blockers(loop, conflicts))
    rest = but_for(loop)
    summary = f"<p>{_prose(rest)}</p>" if rest else ""
    return f"<h4>What keeps it serial</h4>{summary}{entries}" if entries else ""


def _blocker(blocker: Blocker, loop: LoopPlan) -> str:
    quotes = "\n".join(quoted(blocker.spans, loop.nest.function.source))
    first, *rest = blocker.said
    said = "".join(f"<p>{_prose(words)}</p>" for words in rest)
    hint = f"<p><b>What would help:</b> {_prose(blocker.hint)}</p>" if blocker.hint else ""
    return (
        f'<div class="o-blocker"><p><b>{_prose(first)}</b> {_reason_code(blocker.code)}</p>{said}'
        f"<pre>{escape(quotes)}</pre>{hint}</div>"
    )
