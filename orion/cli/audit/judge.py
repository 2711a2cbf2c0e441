"""The verdict on a loop: what its scalars and its accesses to arrays make of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from orion.cli.audit.accesses import Model, NotAnalysed, OutOfWork, carried_scalars, model_of
from orion.cli.audit.conditions import condition_of
from orion.cli.audit.extract import Extracted, extract, may_share
from orion.cli.audit.flow import leaves_loop
from orion.cli.audit.modules import Module
from orion.cli.audit.purity import OPAQUE
from orion.cli.audit.races import Races
from orion.cli.audit.scalars import Scalars, scalars_of
from orion.cli.audit.stores import only_constant
from orion.cli.audit.trips import is_single, limit_of
from orion.cli.audit.values import Finding, Site, Verdict
from orion.cli.audit.words import race_finding
from orion.dependence.access import Dependence
from orion.source import SourceText

MAX_NODES = 6000
MAX_TRIES = 6
ORDER = (Verdict.RACE, Verdict.UNKNOWN, Verdict.CONDITIONAL)
"""Which of several findings is the verdict."""


def judge(site: Site, module: Module, names: frozenset[str], source: SourceText) -> Finding:
    """Return the verdict on a loop."""
    if sum(1 for _ in ast.walk(site.loop)) > MAX_NODES:
        return Finding(Verdict.UNKNOWN, "AUD124", f"the loop is larger than {MAX_NODES} nodes of syntax")
    if is_single(site.loop):
        return Finding(Verdict.PARALLEL, notes=("it makes one trip at most",))
    leaving = leaves_loop(site.loop)
    if leaving is not None:
        word = "return" if isinstance(leaving, ast.Return) else "break"
        reason = f"`{word}` in line {leaving.lineno} ends the loop: Numba runs it serially, or refuses it"
        return Finding(Verdict.UNKNOWN, "AUD125", reason)
    function = site.around[-1] if site.around else None
    scalars = scalars_of(site.loop, function, iterations_of(site.loop), source, is_inner=site.is_inner)
    found = [*scalars.findings, *of_arrays(site, module, names, source, scalars)]
    return combined(found, site)


def combined(findings: Sequence[Finding], site: Site) -> Finding:
    """Return one verdict for what was found: the worst, with the conditions of all."""
    refused = next((one for one in findings if one.code == "AUD125"), None)
    if refused is not None:
        return refused
    for verdict in ORDER:
        those = [one for one in findings if one.verdict is verdict]
        if verdict is Verdict.RACE and those and site.is_inner:
            reason = f"run in parallel, iterations would conflict: {those[0].reason}"
            return Finding(Verdict.CONDITIONAL, "AUD114", reason, "the loop around it is the parallel one")
        if verdict is Verdict.RACE and those and has_one_thread(site):
            reason = f"run by several threads, iterations would conflict: {those[0].reason}"
            return Finding(Verdict.CONDITIONAL, "AUD115", reason, "one thread runs it, as the function asks for")
        if those and verdict is Verdict.CONDITIONAL:
            first = those[0]
            condition = " and ".join(dict.fromkeys(one.condition for one in those))
            return Finding(verdict, first.code, first.reason, condition, first.hint)
        if those:
            return those[0]
    notes = tuple(note for one in findings for note in one.notes)
    return Finding(Verdict.PARALLEL, notes=notes)


def bounded(found: Finding, site: Site) -> Finding:
    """Return a verdict as it is, or, for a race, that the function of the loop may bound it to one trip. The site is
    that of the file's own text, with `assert` and `raise`."""
    if found.race is None:
        return found
    limit = limit_of(site, max(found.race.sizes.values(), default=0))
    if limit is None:
        return found
    line = getattr(limit, "lineno", site.line)
    reason = f"line {line} may keep the loop from sizes at which iterations conflict: {found.reason}"
    return Finding(Verdict.CONDITIONAL, "AUD110", reason, "the loop makes one trip at most", found.hint)


def has_one_thread(site: Site) -> bool:
    """Whether the function of a loop calls `set_num_threads(1)`."""
    for call in (one for function in site.around[-1:] for one in ast.walk(function) if isinstance(one, ast.Call)):
        match call:
            case ast.Call(ast.Name("set_num_threads") | ast.Attribute(_, "set_num_threads"), [ast.Constant(1)]):
                return True
    return False


def iterations_of(loop: ast.For) -> tuple[str, str]:
    """Return the first two iterations as texts."""
    variable = ast.unparse(loop.target)
    arguments = loop.iter.args if isinstance(loop.iter, ast.Call) else []
    start = arguments[0] if len(arguments) > 1 else ast.Constant(0)
    step = arguments[2] if len(arguments) > 2 else ast.Constant(1)
    match start, step:
        case ast.Constant(int(first)), ast.Constant(int(width)):
            return f"{variable} = {first}", f"{variable} = {first + width}"
    text = ast.unparse(start)
    return f"{variable} = {text}", f"{variable} = {text} + {ast.unparse(step)}"


# ---------------------------------------------------------------- arrays


def of_arrays(site: Site, module: Module, names: frozenset[str], source: SourceText, scalars: Scalars) -> list[Finding]:
    """Return what the accesses of a loop to arrays make of it. Where the compiler does not look into a function that
    the loop calls, and that only reads, a value stands for the call."""
    first: Finding | None = None
    opaque: frozenset[str] | None = None
    for _ in range(MAX_TRIES):
        try:
            extracted = extract(site, module, names, source, scalars, opaque)
            if extracted.unresolved:
                called = ", ".join(f"`{name}`" for name in extracted.unresolved)
                found = Finding(Verdict.UNKNOWN, "AUD120", f"the source of {called} is not found")
                message = ""
            else:
                return list(of_model(model_of(extracted, site.line), extracted, scalars, site.loop))
        except OutOfWork as error:
            return [Finding(Verdict.UNKNOWN, "AUD124", str(error))]
        except (NotAnalysed, SyntaxError, ValueError, RecursionError) as error:
            message = str(error)
            found = refused(message, site)
        first = first or found
        named = re.findall(r"`((?:np|numpy)\.[\w.]+)`", message)
        if opaque is not None and not set(named) - opaque:
            break
        opaque = (opaque or frozenset()) | set(named)
    assert first is not None
    return [first]


def refused(reason: str, site: Site) -> Finding:
    """Return what a loop is that the compiler does not analyse."""
    own = {name for one in site.around for name in (argument.arg for argument in one.args.args)}
    called = {
        one.func.id for one in ast.walk(site.loop) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
    }
    passed = sorted(own & called)
    if passed:
        names = ", ".join(f"`{name}`" for name in passed)
        return Finding(Verdict.UNKNOWN, "AUD120", f"{names} is a function that the caller passes")
    return Finding(Verdict.UNKNOWN, "AUD121", reason)


def of_model(model: Model, extracted: Extracted, scalars: Scalars, loop: ast.For) -> Iterator[Finding]:
    carried = [name for name in carried_scalars(model) if name not in scalars.reductions | scalars.settled]
    if carried and not scalars.findings:
        yield Finding(Verdict.UNKNOWN, "ORN104", f"`{carried[0]}` may carry a value from one iteration to the next")
    dependences = tuple(one for one in model.dependences() if one.array not in scalars.reductions)
    races = Races(model)
    race = races.first(dependences)
    if race is not None:
        yield race_finding(race, races)
        return
    yield from map(_without_opaque, of_conflicts(model, races, dependences, loop))
    yield from shared_names(model, extracted)


def of_conflicts(model: Model, races: Races, dependences: tuple[Dependence, ...], loop: ast.For) -> Iterator[Finding]:
    """Return what dependences that are no races make of a loop."""
    rest = [one for one in dependences if not is_constant(one, model, races)]
    if len(rest) < len(dependences):
        arrays = ", ".join(dict.fromkeys(f"`{one.array}`" for one in dependences if one not in rest))
        yield Finding(
            Verdict.PARALLEL, notes=(f"several iterations store the same constant in an element of {arrays}",)
        )
    if rest:
        yield condition_of(rest, model, races, loop)


def _without_opaque(finding: Finding) -> Finding:
    """Return a finding as it is, or that nothing is known where it is about a value that stands for a call."""
    if OPAQUE not in f"{finding.condition}{finding.reason}":
        return finding
    reason = "which elements iterations touch depends on what a function returns"
    return Finding(Verdict.UNKNOWN, "AUD130", reason)


def is_constant(one: Dependence, model: Model, races: Races) -> bool:
    """Whether all that the loop does with an array is to store one constant in it."""
    own = [access for access in model.accesses if access.array == one.array]
    stores = [races.store(access) for access in own if access.is_write]
    known = [store for store in stores if store is not None]
    return all(access.is_write for access in own) and len(known) == len(stores) and only_constant(known)


def shared_names(model: Model, extracted: Extracted) -> Iterator[Finding]:
    """Return the arrays of other names that a written one may share memory with, as the function around has it, and
    what is written that is no array."""
    arrays = dict.fromkeys(access.array for access in model.accesses)
    written = dict.fromkeys(access.array for access in model.accesses if access.is_write)
    for name in written:
        if name in extracted.others:
            yield Finding(Verdict.UNKNOWN, "AUD121", f"`{name}` is {extracted.others[name]}, not an array")
        for other in _sharing(name, arrays, extracted):
            reason = f"`{name}` and `{other}` may stand for the same memory, and `{name}` is written"
            yield Finding(Verdict.UNKNOWN, "AUD122", reason, hint="use one name for an array")
            return


def _sharing(name: str, arrays: Iterable[str], extracted: Extracted) -> Iterator[str]:
    own = extracted.roots.get(name, frozenset({(name,)}))
    yield from (one for one in arrays if one != name and may_share(own, extracted.roots.get(one, frozenset({(one,)}))))
