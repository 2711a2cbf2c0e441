"""The figures of transports as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rich.table import Table

from benchmarks.transports.contenders import BY_NAME

COUNTED_AT = 64 << 20
"""The size of the payload for the table of copies."""

TARGET_FROM = 1 << 20


@dataclass(frozen=True)
class Figures:
    """Of a payload: seconds one way, handed over and with writing and reading; per byte processor seconds of both
    sides and of others, and bytes through the network stack; memory at the peak, in payloads."""

    handed: float
    touched: float
    cpu: float
    cpu_others: float
    network: float
    memory: float


Found = Mapping[str, Mapping[int, Figures]]
"""The figures by transport and size."""


def size_text(size: int) -> str:
    """A size in few letters.

    >>> size_text(1024), size_text(1 << 28)
    ('1 KB', '256 MB')
    """
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB"


def digits(value: float) -> str:
    """Three digits.

    >>> digits(1234.5), digits(12.34), digits(0.0012345)
    ('1,234', '12.3', '0.0012')
    """
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 1 else f"{value:.2g}"


def by_size(title: str, found: Found, value: Callable[[int, Figures], float]) -> Table:
    """One figure of all transports and sizes."""
    sizes = sorted({size for one in found.values() for size in one})
    table = Table("", *map(size_text, sizes), title=title, title_justify="left")
    for name, figures in found.items():
        table.add_row(name, *(digits(value(size, figures[size])) if size in figures else "–" for size in sizes))
    return table


def copies(found: Found) -> Table:
    """What is copied, by what interfaces do and by what was counted."""
    heads = ("", "copies", "which", "bytes through the network stack / payload", "new memory / payload")
    table = Table(*heads, title=f"Copies of a payload of {size_text(COUNTED_AT)} on its way", title_justify="left")
    for name, figures in found.items():
        contender = BY_NAME[name]
        one = figures.get(COUNTED_AT)
        counted = ("–", "–") if one is None else (f"{one.network:.2f}", f"{one.memory:.1f}")
        table.add_row(name, contender.copies, contender.by_what, *counted)
    return table


def all_tables(found: Found) -> Iterator[Table]:
    """All tables."""
    yield by_size("One way, µs: handed over (half of the time there and back)", found, lambda _, one: one.handed * 1e6)
    yield by_size("One way, µs: written, handed over and read", found, lambda _, one: one.touched * 1e6)
    yield by_size("GB/s: written, handed over and read", found, lambda size, one: size / one.touched / 1e9)
    yield by_size("GB/s: handed over", found, lambda size, one: size / one.handed / 1e9)
    yield by_size("Processor time of both sides, ns per byte, handed over", found, lambda _, one: one.cpu * 1e9)
    yield by_size("Processor time of raylets, ns per byte, handed over", found, lambda _, one: one.cpu_others * 1e9)
    yield copies(found)


def targets(found: Found) -> Iterator[str]:
    """The least ratios to Orion's own way on one node, from a megabyte on, and what they should be."""
    if "segment" not in found:
        return
    own = found["segment"]
    for name, target in (("grpc", 3.0), ("objects", 1.5)):
        other = found.get(name, {})
        sizes = [size for size in own if size >= TARGET_FROM and size in other]
        for kind in ("handed", "touched") if sizes else ():
            ratios = {size: getattr(other[size], kind) / getattr(own[size], kind) for size in sizes}
            least = min(ratios, key=lambda size: ratios[size])
            said = "met" if ratios[least] >= target else "NOT met"
            what = "handed over" if kind == "handed" else "written, handed over and read"
            at = size_text(least)
            yield f"{name} / segment, {what}: at least {ratios[least]:.1f} (at {at}); target {target:g}: {said}"
