"""What profiles call loops: by the code of the source that they stand for, and by the part of it that they are."""

import html
import json
import math
import re

import numpy as np
import pytest

import orion
from orion.inspect.profiles.trace import trace_of
from tests.test_inspect_names import LOOPS, arguments, made_names


def wavefront(a, b, idx, M):
    for _t in range(4):
        for i in range(1, M.shape[0] - 1):
            for j in range(1, M.shape[1] - 1):
                M[i, j] = (M[i - 1, j] + M[i + 1, j] + M[i, j - 1] + M[i, j + 1]) / 4.0


def turns(a, b, idx, M):
    u = a.copy()
    for _ in range(7):
        new = u.copy()
        for i in range(1, len(u) - 1):
            new[i] = u[i - 1] + u[i + 1]
        u = new
    return u


def two_arrays(a, b, idx, M):
    sums, counts = np.ones_like(M), np.full(len(b), 2.0)
    for i in range(len(b)):
        counts[i] += b[i]
    for i in range(M.shape[0]):
        for j in range(M.shape[1]):
            sums[i, j] += M[i, j]
    return sums, counts


def scanned(a, b, idx, M):
    total, c = math.log(np.var(a)), np.empty_like(a)
    for t in range(len(a)):
        c[t] = math.exp(total)
        z = a[t] / math.sqrt(1.0 + abs(a[t]))
        b[0] -= 0.5 * (math.log(2.0 * math.pi) + total + z * z)
        total = 0.9 * total + 0.1 * (abs(z) - math.sqrt(2.0 / math.pi)) - 0.01 * z
    return c


def made(a, b, idx, M):
    return a * 2.0, M / np.maximum(M, 1.0)


def once(a, b, idx, M):
    a[0] = a[1] + 1.0
    a[1] = b[0]
    for i in range(2, len(a)):
        a[i] = b[i]


def fused(a, b, idx, M):
    c = np.empty(len(a))
    for i in range(len(a)):
        c[i] = a[i] * 2.0
    for i in range(len(a)):
        a[i] = c[i] + 1.0


RUN = [*LOOPS, wavefront, turns, two_arrays, scanned, made, once, fused]


def run(function, *, force=True, scale=1):
    decorated = orion.parallel_for(function)
    with orion.session("threads", 2, force_parallel=force), orion.profile() as profile:
        decorated(*arguments(scale))
    return decorated.last_run, profile


def views(last_run, profile):
    for page in (last_run._repr_html_(), profile._repr_html_()):
        yield html.unescape(re.sub("<[^>]*>", "\n", re.sub("<style.*?</style>", "", page, flags=re.DOTALL)))
    yield str(last_run)
    yield str(profile)
    yield json.dumps(profile.to_dict())
    yield json.dumps(trace_of([last_run.record], 0))
    yield profile.bottleneck.sentence


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("function", RUN)
def test_no_view_of_a_run_has_a_name_that_is_not_in_the_source(function):
    last_run, profile = run(function)
    names = made_names(last_run.plan) | {"once"} - {function.__name__}
    for text in views(last_run, profile):
        assert not names.intersection(re.findall(r"[A-Za-z_]\w*", text.replace("once per", "").replace("once, on", "")))


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("function", RUN)
def test_no_two_tables_of_a_run_have_one_title(function):
    titles = [line for line in str(run(function)[0]).splitlines() if line.startswith(f"{function.__name__}: ")]
    assert titles
    assert len({*titles}) == len(titles)


TITLES = {
    wavefront: ["for _t in range(4) (+1), wavefront"],
    turns: ["for i in range(1, len(u) - 1) (+4, 2 of 3), independent", "new = u.copy() (+3, 1 of 3), independent"],
    two_arrays: [
        "sums, counts = np.ones_like(M), np.full(len(b), 2.0) (+1, `sums`), independent",
        "sums, counts = np.ones_like(M), np.full(len(b), 2.0) (+1, with line +2, `counts`), independent",
    ],
    scanned: [
        "for t in range(len(a)) (+2, first pass of the scan), independent",
        "for t in range(len(a)) (+2, between the passes of the scan), serial",
        "for t in range(len(a)) (+2, second pass of the scan), independent",
    ],
    made: ["return a * 2.0, M / np.maximum(M, 1.0) (+1, 1 of 2), independent"],
    once: ["a[0] = a[1] + 1.0 (+1, with line +2), independent"],
    fused: ["for i in range(len(a)) (+2, with line +4), independent"],
}


@pytest.mark.filterwarnings("ignore::orion.SerialLoopWarning")
@pytest.mark.parametrize("function", TITLES)
def test_tables_are_titled_by_code_and_part(function):
    first = function.__code__.co_firstlineno
    last_run, _ = run(function, scale=3000 if function is scanned else 1)
    text = str(last_run)
    for title in TITLES[function]:
        code, _, rest = title.rpartition(" (")
        place, strategy = rest.split(")")
        lines = re.sub(r"\+(\d)", lambda found: str(first + int(found[1])), place)
        assert f"{function.__name__}: {code} (tests/test_profile_names.py:{lines}){strategy}" in text, text


def test_the_profile_itself_is_no_part_of_a_call():
    last_run, profile = run(wavefront)
    assert "the profile" not in str(last_run)
    for text in (str(last_run), str(profile)):
        assert all(int(percent) <= 100 for percent in re.findall(r"(\d+) %", text))
