"""A profile as HTML for a notebook: the sentence, the timeline, the tables."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from orion.inspect.html.style import STYLE
from orion.inspect.profiles.bottleneck import Bottleneck
from orion.inspect.profiles.numbers import Numbers
from orion.inspect.profiles.text import Row, driver_rows, loop_rows, notes
from orion.inspect.text.words import counted, time_in_words


def profile_html(numbers: Numbers, bottleneck: Bottleneck, picture: str) -> str:
    """A profile as a piece of HTML."""
    title = f"profile: {time_in_words(numbers.wall)}, {counted(numbers.calls, 'call')}"
    told = "".join(f"<p>{escape(note)}</p>" for note in notes(numbers) if note)
    return (
        f'<div class="orion-plan"><style>{STYLE}</style><h3>{escape(title)}</h3><p>{escape(bottleneck.sentence)}</p>'
        f'<div class="o-picture">{picture}</div>{_table(loop_rows(numbers))}{_table(driver_rows(numbers))}{told}</div>'
    )


def _table(rows: Iterable[Row]) -> str:
    first, *others = rows
    head = "".join(f"<th>{escape(cell)}</th>" for cell in first)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in others)
    return f'<div class="o-scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cells(row: Row) -> str:
    first, *others = row
    if not any(others):
        return f'<th scope="row" colspan="{len(row)}">{escape(first)}</th>'
    return f'<th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in others)
