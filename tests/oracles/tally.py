"""What became of random nests: counts by name, and what is printed of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

SHOWN = (
    "nests", "refused", "rewritten", "in sweeps", "parallel", "compiled", "leaving", "unsound", "wrong", "proof",
    "crash", "hang", "slow", "files", "wrong files",
)  # fmt: skip


class Failure(AssertionError):  # noqa: N818  (what the fuzzer reports, by kind)
    """What is wrong with a nest: `kind` is "unsound", "wrong", "proof", "crash" or "hang"; `key` is the same for what
    has the same cause, as far as that can be told."""

    def __init__(self, kind: str, message: str, key: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.key = f"{kind}: {key}"


@dataclass
class Tally:
    """What became of the nests and of their loops; `missed` has the causes, `examples` the number of one nest each.
    `checks` are the seconds that checking each plan took."""

    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    examples: dict[str, int] = field(default_factory=dict)
    checks: list[float] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.refusals += other.refusals
        self.missed += other.missed
        self.checks += other.checks
        self.examples = other.examples | self.examples

    def text(self) -> str:
        """What is printed."""
        count = self.counts
        lines = [
            ", ".join(f"{name} {count[name]}" for name in SHOWN),
            f"plans checked {len(self.checks)}, {self.time_of_checks()}; not proved {count['unproved']}",
            f"verdicts {count['verdicts']}; affine loops {count['affine']}, by brute force at many sizes:",
            f"  no dependence {count['truly parallel']}, missed by the analysis {self.missed_of('truly parallel')}",
            f"  none but for a last value to be kept {count['copies']}, missed {self.missed_of('copies')}",
            f"  a dependence {count['serial']}, of which {count['elsewhere']} at other sizes than the first only",
            f"  never two trips {count['single']}",
        ]
        for reason, number in self.missed.most_common(12):
            lines.append(f"  missed {number}: {reason} (nest {self.examples.get(reason, '?')})")
        lines += [f"  refused {number}: {reason}" for reason, number in self.refusals.most_common()]
        return "\n".join(lines)

    def time_of_checks(self) -> str:
        times = sorted(self.checks) or [0.0]
        return f"median {1e3 * times[len(times) // 2]:.0f} ms, worst {times[-1]:.1f} s"

    def missed_of(self, kind: str) -> str:
        missed = self.counts[f"missed {kind}"]
        return f"{missed} ({100 * missed / max(1, self.counts[kind]):.2f} %)"
