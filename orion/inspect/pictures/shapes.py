"""The few shapes that pictures are made of, as SVG text. Units are pixels at a scale of 1; y grows downward."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from math import atan2, cos, pi, sin

INK = "#1f2328"
FAINT = "#59636e"
GRID = "#ffffff"
PAPER = "#ffffff"
EDGE = "#d1d9e0"
WORKERS = ("#8ecdf0", "#f5c65d", "#7ccdb1", "#e3a6c6", "#f3ea86", "#e89a6c", "#8fb8d8", "#c4c9cf")
"""A colour per worker, to be told apart with any colour vision and read through by dark text: tints of the palette of
Okabe & Ito, *Color Universal Design* (2008)."""

FONT = "font-family=\"system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif\""
HEAD = 7.0
CHARACTER = 0.56
"""The width of a character, as a part of the size of its font: a little more than the average."""


def number(value: float) -> str:
    """A coordinate, to a tenth of a pixel.

    >>> number(3.0), number(2.25)
    ('3', '2.2')
    """
    return f"{value:.1f}".removesuffix(".0")


def text(
    x: float, y: float, words: str, *, size: float = 12, anchor: str = "start", weight: int = 400, fill: str = INK,
    halo: bool = False,
) -> str:  # fmt: skip
    """A line of text whose baseline starts (or, by `anchor`, ends or has its middle) at x, y."""
    around = f' stroke="{PAPER}" stroke-width="4" stroke-linejoin="round" paint-order="stroke"' if halo else ""
    heavy = f' font-weight="{weight}"' if weight != 400 else ""
    return (
        f'<text x="{number(x)}" y="{number(y)}" font-size="{number(size)}" text-anchor="{anchor}" fill="{fill}"{heavy}'
        f"{around}>{escape(words)}</text>"
    )


def grid(
    x: float, y: float, width: float, height: float, rows: int, columns: int, *, stroke: str
) -> str:  # fmt: skip
    """The lines between the cells of a table."""
    across = [f"M{number(x)} {number(y + row * height / rows)}h{number(width)}" for row in range(1, rows)]
    down = [f"M{number(x + column * width / columns)} {number(y)}v{number(height)}" for column in range(1, columns)]
    return f'<path d="{"".join(across + down)}" fill="none" stroke="{stroke}"/>'


def boxes(corners: Iterable[tuple[float, float]], width: float, height: float, *, stroke: str) -> str:
    """The outlines of cells of one size, by their upper left corners."""
    sides = f"h{number(width)}v{number(height)}h{number(-width)}z"
    return (
        f'<path d="{"".join(f"M{number(x)} {number(y)}{sides}" for x, y in corners)}" fill="none" stroke="{stroke}"/>'
    )


def text_width(words: str, size: float = 12) -> float:
    """About how wide a line of text is."""
    return len(words) * size * CHARACTER


def rectangle(
    x: float, y: float, width: float, height: float, *, fill: str, stroke: str = "none", thick: float = 1,
    title: str = "", round_by: float = 0,
) -> str:  # fmt: skip
    """A rectangle. Its `title` is shown by a browser when pointed at."""
    corners = f' rx="{number(round_by)}"' if round_by else ""
    shape = (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" fill="{fill}" '
        f'stroke="{stroke}" stroke-width="{number(thick)}"{corners}'
    )
    return f"{shape}><title>{escape(title)}</title></rect>" if title else f"{shape}/>"


def outside(
    x: float, y: float, width: float, height: float, corners: Iterable[tuple[float, float]], *, fill: str, title: str
) -> str:
    """What of a rectangle is not inside of a line through `corners`, which is closed."""
    points = "L".join(f"{number(px)} {number(py)}" for px, py in corners)
    around = f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"
    path = f'<path d="{around}M{points}z" fill="{fill}" fill-rule="evenodd">'
    return f"{path}<title>{escape(title)}</title></path>"


def line(
    x1: float, y1: float, x2: float, y2: float, *, stroke: str = INK, thick: float = 1, dashed: bool = False
) -> str:
    """A straight line."""
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return (
        f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}" stroke="{stroke}" '
        f'stroke-width="{number(thick)}"{dashes}/>'
    )


def circle(x: float, y: float, radius: float, *, fill: str = PAPER, stroke: str = INK) -> str:
    """A circle around x, y."""
    return (
        f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" fill="{fill}" stroke="{stroke}" '
        'stroke-width="1.5"/>'
    )


def head(x: float, y: float, angle: float, *, size: float = HEAD, fill: str = INK) -> str:
    """An arrow head with its tip at x, y that points in direction `angle` (radians, clockwise from rightward)."""
    spread = pi / 7
    corners = [(x, y)] + [(x - size * cos(angle + s), y - size * sin(angle + s)) for s in (spread, -spread)]
    points = " ".join(f"{number(px)},{number(py)}" for px, py in corners)
    return f'<polygon points="{points}" fill="{fill}"/>'


def arrow(
    x1: float, y1: float, x2: float, y2: float, *, both: bool = False, dashed: bool = False, thick: float = 1.6,
    size: float = HEAD, stroke: str = INK,
) -> str:  # fmt: skip
    """An arrow from the first point to the second; with `both`, it has a head at each end."""
    angle = atan2(y2 - y1, x2 - x1)
    inset = size * 0.7
    end = x2 - inset * cos(angle), y2 - inset * sin(angle)
    start = (x1 + inset * cos(angle), y1 + inset * sin(angle)) if both else (x1, y1)
    parts = [line(*start, *end, stroke=stroke, thick=thick, dashed=dashed), head(x2, y2, angle, size=size, fill=stroke)]
    if both:
        parts.append(head(x1, y1, angle + pi, size=size, fill=stroke))
    return "".join(parts)


def arc(x1: float, x2: float, y: float, height: float, *, both: bool = False, dashed: bool = False) -> str:
    """A bent arrow over a row of shapes, from x1 to x2, both at height y; it rises by about `height`."""
    middle, control = (x1 + x2) / 2, y - 2 * height
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    angle = atan2(y - control, x2 - middle)
    parts = [
        f'<path d="M{number(x1)} {number(y)}Q{number(middle)} {number(control)} {number(x2)} {number(y)}" fill="none" '
        f'stroke="{INK}" stroke-width="1.6"{dashes}/>',
        head(x2, y, angle),
    ]
    if both:
        parts.append(head(x1, y, pi - angle))
    return "".join(parts)


def document(width: float, height: float, title: str, description: str, shapes: Iterable[str]) -> str:
    """A whole SVG picture on paper of its own, so that it reads on a dark page too."""
    body = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {number(width)} {number(height)}" '
        f'width="{number(width)}" height="{number(height)}" {FONT}>\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(description)}</desc>\n"
        f"{rectangle(0.5, 0.5, width - 1, height - 1, fill=PAPER, stroke=EDGE, round_by=6)}\n{body}\n</svg>\n"
    )
