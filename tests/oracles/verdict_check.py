"""The verdict on every `for` next to its dependences by brute force.

A `for` is *truly parallel* if it carries no dependence at any of many sizes: those of the nest itself, those that the
analysis itself names (the sizes of a pair of iterations that it thinks dependent), and some that are drawn. One that is
called serial all the same is *missed*. Only affine loops count (`carried.is_affine`) that make two trips somewhere.
Temporaries of a trip and scalars that are only reduced are no dependences.

Where each trip writes what it reads, but the value of the last one is needed after the loop, there is a dependence, and
private copies remove it. Such a loop may be called either; it is counted apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from orion.api import ParallelFunction
from orion.cost.extents import parameter_values
from orion.dependence.access import Dependence
from orion.dependence.bounds import fix_parameters
from orion.ir.signature import argument_types
from orion.plan.plan import Verdict
from tests.oracles.carried import LoopFacts, Recording
from tests.oracles.nests import Nest
from tests.oracles.sizes import facts_at, needed_extents, other_arguments, shapes_in_bounds
from tests.oracles.tally import Failure, Tally

if TYPE_CHECKING:
    import islpy as isl

DRAWN_SIZES = 24
"""How many sizes are drawn for a loop that is called serial, until it shows a dependence."""

THOROUGH_SIZES = 4
"""How many sizes are drawn to check the verdicts of a nest that is checked thoroughly."""

MOST_HINTS = 20
LARGEST_HINTS = (8, 16, 40, 80)
TRIALS = 6
ABSENT = -2
"""The value of integers that a dependence does not mention: loops that do are not to ask for larger arrays."""


def verdicts_for_any(decorated: ParallelFunction[..., Any], arguments: Mapping[str, Any]) -> tuple[Verdict, ...]:
    """The verdicts on the `for`s of a function for any sizes and integers: those of a plan are for its call."""
    types, _ = argument_types(arguments)
    return decorated._preparations.plain.typed(types).variants[-1].verdicts


def check_at_call(verdicts: Sequence[Verdict], nest: Nest) -> None:
    """Failure where a loop carries a dependence in the nest's own call and a plan for that calls it parallel."""
    recording = Recording(nest)
    Seen([one for one in verdicts if 0 <= one.index < len(recording.lines)]).add(recording.facts(nest.arguments()))


def check_verdicts(verdicts: Sequence[Verdict], nest: Nest, tally: Tally, *, thorough: bool = False) -> None:
    """Compare the verdicts on the `for`s with the brute-force dependences; those without a verdict are left out.

    Failure where a loop is called parallel and carries a dependence."""
    recording = Recording(nest)
    known = [verdict for verdict in verdicts if 0 <= verdict.index < len(recording.lines)]
    seen = Seen(known)
    seen.add(recording.facts(nest.arguments()))
    first = set(seen.witnesses)
    if thorough or seen.open():
        with suppress(IndexError):  # the nest may leave an array at its larger size
            seen.add(recording.facts(nest.arguments(1)))
    if thorough:
        for arguments in other_arguments(nest, recording, (), THOROUGH_SIZES, nest.seed):
            seen.add(facts_at(recording, arguments))
    seen.look_at_more_sizes(nest, recording)
    count(seen, first, nest, tally)


class Seen:
    """What runs at several sizes have shown of the loops that there are verdicts on."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        self.verdicts = {verdict.index: verdict for verdict in verdicts}
        self.witnesses: dict[int, LoopFacts] = {}
        self.affine: set[int] = set()
        self.several: set[int] = set()

    def add(self, facts: Sequence[LoopFacts] | None) -> None:
        """Take in a run; Failure where it contradicts a verdict."""
        for one in facts or ():
            if one.number not in self.verdicts:
                continue
            if one.is_affine:
                self.affine.add(one.number)
            if one.most_trips > 1:
                self.several.add(one.number)
            if one.witness and not one.copies_help and self.verdicts[one.number].is_parallel:
                message = f"the loop in line {one.line} is called parallel, but {one.witness}"
                raise Failure("unsound", message, "a loop is called parallel and is not")
            if one.witness and (one.number not in self.witnesses or self.witnesses[one.number].copies_help):
                self.witnesses[one.number] = one

    def open(self) -> list[Verdict]:
        """The verdicts that are missed ones if no other size shows a dependence that copies do not remove."""
        return [
            verdict
            for number, verdict in self.verdicts.items()
            if number in self.affine
            and (number not in self.witnesses or self.witnesses[number].copies_help)
            and not verdict.is_parallel
        ]

    def look_at_more_sizes(self, nest: Nest, recording: Recording) -> None:
        left = self.open()
        if not left:
            return
        claimed = [dependence for verdict in left for dependence in verdict.carried]
        hints = islice(chain.from_iterable(sizes_of(one, nest, recording) for one in claimed), MOST_HINTS)
        for arguments in other_arguments(nest, recording, hints, DRAWN_SIZES, nest.seed):
            self.add(facts_at(recording, arguments))
            if not self.open():
                return


def count(seen: Seen, first: set[int], nest: Nest, tally: Tally) -> None:
    """Count every affine loop in one line of the tally."""
    tally.counts["verdicts"] += len(seen.verdicts)
    for number in sorted(seen.affine):
        tally.counts["affine"] += 1
        verdict = seen.verdicts[number]
        witness = seen.witnesses.get(number)
        if witness is not None and not witness.copies_help:
            tally.counts["serial"] += 1
            tally.counts["elsewhere"] += number not in first
        elif number not in seen.several:
            tally.counts["single"] += 1
        else:
            kind = "truly parallel" if witness is None else "copies"
            tally.counts[kind] += 1
            if not verdict.is_parallel:
                tally.counts[f"missed {kind}"] += 1
                tally.missed[f"{missed_for(verdict, nest)}{', copies' if witness else ''}"] += 1


# ---------------------------------------------------------------- what the analysis says


def sizes_of(dependence: Dependence, nest: Nest, recording: Recording) -> Iterator[Mapping[str, int]]:
    """Sizes at which there are such pairs of iterations, as the analysis has it: some small ones."""
    import islpy as isl

    sizes = isl.Map(dependence.relation).params()
    names = [str(sizes.get_dim_name(isl.dim_type.param, at)) for at in range(sizes.dim(isl.dim_type.param))]
    for most in LARGEST_HINTS:
        small = sizes.intersect(limited(names, {}, most))
        for piece in small.get_basic_sets()[:3]:
            found = allowed(isl.Set.from_basic_set(piece), names, nest, recording)
            if found is not None:
                yield found


def allowed(sizes: isl.Set, names: list[str], nest: Nest, recording: Recording) -> Mapping[str, int] | None:
    """The least of these sizes, if possible with arrays in which all subscripts fit."""
    import islpy as isl

    found: dict[str, int] | None = None
    for _ in range(TRIALS):
        point = as_dimensions(sizes, len(names)).lexmin().sample_point()
        if point.is_void():
            break
        values = [point.get_coordinate_val(isl.dim_type.set, at).to_python() for at in range(len(names))]
        found = {name: int(value) for name, value in zip(names, values, strict=True)}
        found = dict.fromkeys(nest.integers, ABSENT) | found
        integers = {name: found[name] for name in nest.integers}
        known = {
            name: tuple(found.get(f"{name}__{axis}", extent) for axis, extent in enumerate(nest.arrays[name].small))
            for name in shapes_in_bounds(nest)
        }
        shapes = needed_extents(nest, recording, integers, known)
        if shapes is None:
            return None
        needed = {f"{name}__{axis}": extent for name, shape in shapes.items() for axis, extent in enumerate(shape)}
        if all(found[name] >= needed.get(name, 0) for name in names):
            break
        sizes = sizes.intersect(limited(names, needed, max(LARGEST_HINTS)))
    return found


def as_dimensions(sizes: isl.Set, count: int) -> isl.Set:
    """The set of sizes as one whose dimensions are what its parameters were."""
    import islpy as isl

    return isl.Set.from_params(sizes).move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, count)


def limited(names: list[str], least: Mapping[str, int], most: int) -> isl.Set:
    import islpy as isl

    limits = " and ".join(f"{least.get(name, 0)} <= {name} <= {most}" for name in names)
    return isl.Set(f"[{', '.join(names)}] -> {{ : {limits or 'true'} }}")


def missed_for(verdict: Verdict, nest: Nest) -> str:
    """What a loop that is parallel was thought to carry."""
    if not verdict.carried:
        return ", ".join(sorted({reason.code for reason in verdict.reasons}))
    here = [dependence for dependence in verdict.carried if not is_elsewhere(dependence, nest)]
    where = "" if here else ", at other sizes than the first"
    shown = (here or verdict.carried)[0]
    what = "an array" if shown.array in nest.arrays else "a scalar"
    return f"{shown.kind} dependence over {what}{'' if shown.exact else ', approximate'}{where}"


def is_elsewhere(dependence: Dependence, nest: Nest) -> bool:
    """Whether there is no such pair of iterations at the small size."""
    import islpy as isl

    shapes = {name: spec.small for name, spec in nest.arrays.items()}
    values = parameter_values(shapes, {name: pair[0] for name, pair in nest.integers.items()})
    return bool(fix_parameters(isl.Map(dependence.relation).wrap(), values).is_empty())
