"""The figures of transports as tables, for the terminal and for the documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from benchmarks.transports.contenders import BY_NAME
from benchmarks.written import markdown

COUNTED_AT = 64 << 20
"""The size of the payload for the table of copies."""

TARGET_FROM = 1 << 20
TOLD = (1 << 10, 1 << 20, 1 << 28)
"""The sizes for which the documentation has all figures."""


@dataclass(frozen=True)
class Figures:
    """Of a payload: seconds one way, handed over and with writing and reading; per byte processor seconds of both
    sides, of those that turn round waiting for a flag (0 without flags), and of others, and bytes through the network
    stack; memory at the peak, in payloads."""

    handed: float
    touched: float
    cpu: float
    waiting: float
    cpu_others: float
    network: float
    memory: float


Found = Mapping[str, Mapping[int, Figures]]
"""The figures by transport and size."""

Value = Callable[[int, Figures], float]
"""What is told of a size and its figures."""


def size_text(size: int) -> str:
    """A size in few letters.

    >>> size_text(1024), size_text(1 << 28)
    ('1 KB', '256 MB')
    """
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB"


def digits(value: float) -> str:
    """Three digits.

    >>> digits(1234.5), digits(12.34), digits(0.0012345), digits(0.000027), digits(0.0)
    ('1,234', '12.3', '0.0012', '0.000027', '0')
    """
    if value >= 100:
        return f"{value:,.0f}"
    if 0 < value < 1e-4:
        return f"{value:.6f}"
    return f"{value:.3g}" if value >= 1 else f"{value:.2g}"


def sizes_of(found: Found) -> list[int]:
    """All sizes that were measured."""
    return sorted({size for one in found.values() for size in one})


def by_size(title: str, found: Found, value: Value) -> Table:
    """One figure of all transports and sizes."""
    sizes = sizes_of(found)
    table = Table("", *map(size_text, sizes), title=title, title_justify="left")
    for name, figures in found.items():
        table.add_row(name, *_cells(figures, sizes, value))
    return table


def copies(found: Found) -> Table:
    """What is copied, by what interfaces do and by what was counted."""
    heads = ("", "copies", "which", "bytes through the network stack / payload", "new memory / payload")
    table = Table(*heads, title=f"Copies of a payload of {size_text(COUNTED_AT)} on its way", title_justify="left")
    for name, figures in found.items():
        contender = BY_NAME[name]
        table.add_row(name, contender.copies, contender.by_what, *_counted(figures))
    return table


def all_tables(found: Found) -> Iterator[Table]:
    """All tables."""
    yield by_size("One way, µs: handed over (half of the time there and back)", found, lambda _, one: one.handed * 1e6)
    yield by_size("One way, µs: written, handed over and read", found, lambda _, one: one.touched * 1e6)
    yield by_size("GB/s: written, handed over and read", found, lambda size, one: size / one.touched / 1e9)
    yield by_size("GB/s: handed over", found, lambda size, one: size / one.handed / 1e9)
    yield by_size("Processor time of both sides, ns per byte, handed over", found, lambda _, one: one.cpu * 1e9)
    yield by_size("Of that, waiting for a flag, ns per byte", found, lambda _, one: one.waiting * 1e9)
    yield by_size("Processor time of raylets, ns per byte, handed over", found, lambda _, one: one.cpu_others * 1e9)
    yield copies(found)


def documented(found: Found) -> str:
    """The tables of the documentation, as Markdown: times, and what handing over takes besides."""
    told = [size for size in TOLD if size in sizes_of(found)]
    return f"{_times(found, told)}\n{_costs(found, told)}"


def _times(found: Found, told: Sequence[int]) -> str:
    sizes, rows = sizes_of(found), []
    for name, one in found.items():
        times = _cells(one, sizes, lambda _, of: of.touched * 1e6)
        rates = _cells(one, told, lambda size, of: size / of.touched / 1e9)
        rows.append((BY_NAME[name].label, BY_NAME[name].copies, *times, ", ".join(rates)))
    heads = ("one way, µs: written, handed over and read", "copies", *map(size_text, sizes), f"GB/s at {_listed(told)}")
    return markdown(heads, rows)


def _costs(found: Found, told: Sequence[int]) -> str:
    kinds = {
        f"µs at {_listed(told)}": lambda _, of: of.handed * 1e6,
        "ns of a core per byte": lambda _, of: of.cpu * 1e9,
        "of that waiting for a flag": lambda _, of: of.waiting * 1e9,
        "of raylets besides": lambda _, of: of.cpu_others * 1e9,
    }
    heads = ("handed over alone", *kinds, "through the network stack / payload", "new memory / payload")
    rows = [
        (BY_NAME[name].label, *(", ".join(_cells(one, told, value)) for value in kinds.values()), *_counted(one))
        for name, one in found.items()
    ]
    return markdown(heads, rows)


def _listed(sizes: Sequence[int]) -> str:
    return ", ".join(map(size_text, sizes))


def _cells(one: Mapping[int, Figures], sizes: Sequence[int], value: Value) -> list[str]:
    return [digits(value(size, one[size])) if size in one else "–" for size in sizes]


def _counted(one: Mapping[int, Figures]) -> tuple[str, str]:
    found = one.get(COUNTED_AT)
    return ("–", "–") if found is None else (f"{found.network:.2f}", f"{found.memory:.1f}")


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
