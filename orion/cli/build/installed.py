"""The installed packages that ship kernels, and which of these fit here."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from orion.dataclass import dataclass
from orion.inspect.text.words import counted
from orion.kernel.build.shipped import FOLDER, SUFFIX, is_switched_off, misfit


@dataclass(frozen=True, slots=True)
class Shipped:
    """The folder of kernels of a package: how many there are, how many may run here, and what keeps the others from it,
    with how many."""

    folder: str
    kernels: int
    fitting: int
    others: dict[str, int]

    def in_words(self) -> str:
        """Return it as a sentence."""
        found = f"{self.folder}: {self.fitting} of {counted(self.kernels, 'kernel')} can be loaded"
        others = [f"{count} {why}" for why, count in self.others.items()]
        return f"{found}; {', '.join(others)}" if others else found


def shipped_here() -> tuple[Shipped, ...]:
    """Return the packages among those that Python finds; of packages inside packages none."""
    return tuple(_shipped(folder) for folder in _folders())


def _folders() -> Iterator[Path]:
    for entry in dict.fromkeys(Path(entry).absolute() for entry in sys.path):
        if entry.is_dir():
            yield from sorted(folder for folder in entry.glob(f"*/{FOLDER}") if any(folder.glob(f"*{SUFFIX}")))


def _shipped(folder: Path) -> Shipped:
    files = [*folder.glob(f"*{SUFFIX}")]
    off = is_switched_off()
    found = Counter(off or misfit(path) for path in files)
    fitting = found.pop("", 0)
    return Shipped(str(folder), len(files), fitting, dict(sorted(found.items())))
