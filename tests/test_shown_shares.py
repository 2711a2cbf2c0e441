"""The first line of a plan says where the work is, by predicted time; what follows from it: whether a plan is parallel,
warnings, `--check`, and which picture is drawn."""

from __future__ import annotations

import html
import inspect
import re
import warnings

import numpy as np
import pytest

import orion
from orion.inspect.data import plan_to_dict
from orion.inspect.html.html import plan_html
from orion.inspect.text.text import plan_text
from orion.inspect.text.words import percent
from orion.inspect.tree.view import seconds_of
from orion.plan.plan import Fill, Fused, Member, ReorderedSingle
from orion.plan.shares import costliest_loop, predicted_ns, runs_alone, shares
from tests.inspect_loops import CASES, history, plan_of
from tests.made_functions import again
from tests.whole_functions import line_search


def filtered(x, out, level, rounds):
    """One of the loops in the rounds can be shared out, but most of the work is a recurrence."""
    for t in range(rounds):
        s = level[t]
        for i in range(x.shape[0]):
            s = np.exp(-s) + np.sin(x[i])
        level[t + 1] = s
        for i in range(x.shape[0]):
            x[i] = 0.5 * x[i] + s
            out[i] = x[i]


def small_then_large(a, b, A):
    for i in range(1, a.shape[0]):
        a[i] = a[i - 1] + b[i]
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = np.exp(A[i, j])


def no_loop(a):
    a[0] = 2.0


def long(n=300_000):
    return np.ones(n), np.ones(n), np.ones(21), 20


def plan(function, *arguments, workers=2):
    with orion.session("threads", workers):
        return orion.parallel_for(function).plan(*arguments)


def first_line(shown):
    return " ".join(str(shown).split("\n\n")[0].split())


def test_the_first_line_says_what_one_worker_runs_and_why():
    shown = plan(filtered, *long())
    line = filtered.__code__.co_firstlineno
    told = first_line(shown)
    assert re.search(r"partly parallel, \d+ %; one worker runs the rest: lines? [\d, –]+ (is|are) serial because", told)
    assert f"{line + 5}" in told
    assert not shown.is_parallel
    assert shown.to_dict()["is_parallel"] is False
    assert "o-serial" in shown._repr_html_().split("</h3>")[0]
    assert "one worker runs the rest" in shown._repr_html_()


def test_a_call_warns_of_it_and_require_parallel_refuses():
    with orion.session("threads", 2):
        with pytest.warns(orion.SerialLoopWarning, match="serial"):
            orion.parallel_for(filtered)(*long())
        with pytest.raises(orion.NotParallelError, match="serial"):
            orion.parallel_for(require_parallel=True)(filtered)(*long())


def test_a_loop_whose_statements_mostly_run_once_is_no_parallel_one():
    """A new order shares out one of the loops inside; the sum that has most of the work is run by one worker."""
    arguments = np.zeros(20), np.ones(1_000_000)
    shown = plan(history, *arguments)
    assert [loop.strategy == "serial" for loop in shown.loops] == [False]
    assert not shown.is_parallel
    assert "1 loop, partly parallel, 14 %; one worker runs the rest: " in first_line(shown)
    with (
        orion.session("threads", 2),
        pytest.warns(orion.SerialLoopWarning, match="`history` has 1 loop, partly parallel"),
    ):
        orion.parallel_for(history)(*arguments)


def test_a_small_serial_loop_beside_a_large_parallel_one():
    shown = plan(small_then_large, np.ones(1000), np.ones(1000), np.ones((1000, 1000)))
    told = first_line(shown)
    assert "2 loops, partly parallel, over 99 %; one worker runs the rest: line" in told
    line = small_then_large.__code__.co_firstlineno
    assert costliest_loop(shown.function).nest.span.line == line + 3
    assert re.search(rf"^ +{line + 1}  for i in range\(1, a\.shape\[0\]\)  serial because ", str(shown), re.M)
    assert "line 3" not in str(shown).split("\n")[0]


def test_the_picture_is_of_the_costliest_loop(tmp_path):
    shown = plan(small_then_large, np.ones(1000), np.ones(1000), np.ones((1000, 1000)))
    shown.save_svg(tmp_path / "plan.svg")
    picture = (tmp_path / "plan.svg").read_text()
    assert f":{small_then_large.__code__.co_firstlineno + 3}<" in picture
    assert "serial" not in picture


def test_a_part_that_one_worker_runs_is_drawn_where_it_is_the_costliest(tmp_path):
    shown = plan(filtered, *long())
    if shown.loops[0].parts:
        assert "which one worker runs in every iteration" in shown.svg_of(shown.loops[0])
    else:
        shown.save_svg(tmp_path / "plan.svg")
        assert "serial: one worker" in (tmp_path / "plan.svg").read_text()


def test_a_function_without_a_loop_is_not_parallel():
    shown = plan(no_loop, np.zeros(10))
    assert (shown.is_parallel, shown.loops, shown.to_dict()["is_parallel"]) == (False, (), False)
    assert first_line(shown) == "no_loop(a): no loop to share out"
    with pytest.raises(orion.NotParallelError, match="no loop to share out"):
        orion.parallel_for(require_parallel=True)(no_loop)(np.zeros(10))
    a = np.zeros(10)
    with pytest.warns(orion.SerialLoopWarning, match="no loop to share out"):
        orion.parallel_for(no_loop)(a)
    assert a.tolist() == [2.0] + [0.0] * 9


def test_where_sizes_alone_are_against_sharing_out_nothing_is_warned_of():
    def halve(a):
        for i in range(a.shape[0]):
            a[i] = 0.5 * a[i]

    shown = plan(halve, np.zeros(100))
    assert shown.is_parallel
    assert ": 1 loop, parallel, but too small to share (1.0 µs): " in first_line(shown)
    assert "[ORN120]" in first_line(shown)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        orion.parallel_for(require_parallel=True)(halve)(np.zeros(100))


@orion.parallel_for
def chained(a):
    for i in range(1, a.shape[0]):
        a[i] = 0.5 * a[i - 1]


@orion.parallel_for
def chained_and_small(a, b):
    for i in range(b.shape[0]):
        b[i] = 0.5 * b[i]
    for i in range(1, a.shape[0]):
        a[i] = 0.5 * a[i - 1]


@orion.parallel_for
def doubled(a):
    for i in range(a.shape[0]):
        a[i] = 2.0 * a[i]


VERDICTS = [
    (doubled, (np.ones(2_000_000),), "parallel", "parallel; all of the work is shared out", "parallel", 2),
    (doubled, (np.ones(100),), "parallel, too small to share", "but too small to share (1.0 µs): ", "parallel", 1),
    (chained, (np.ones(100),), "serial", "serial because in lines ", "serial", 1),
    (chained_and_small, (np.ones(100), np.ones(10)), "serial", "serial because in lines ", "serial", 1),
    (orion.parallel_for(small_then_large), (np.ones(9), np.ones(9), np.ones((1000, 1000))), "partly parallel",
     "partly parallel, over 99 %; ", "partly", 2),
    (orion.parallel_for(filtered), long(), "partly parallel", "partly parallel, ", "partly", 2),
    (orion.parallel_for(no_loop), (np.ones(9),), "no loop to share out", "no loop to share out", "serial", 1),
]  # fmt: skip


@pytest.mark.parametrize(("loop", "given", "extent", "words", "badge", "workers"), VERDICTS)
def test_text_data_pictures_and_warnings_follow_one_verdict(loop, given, extent, words, badge, workers):
    with orion.session("threads", 2):
        shown = loop.plan(*given)
        warned = loop._preparations.plain.prepare(loop._bind(given, {})[1], 2, False).serial
    found, data, page = shown.parallelism, shown.to_dict(), shown._repr_html_()
    assert (str(found.extent), shown.runs_on, found.runs_on) == (extent, workers, workers)
    assert words in first_line(shown)
    assert data["parallelism"]["extent"] == extent
    assert (data["parallelism"]["share"], data["parallelism"]["runs_on"]) == (found.share, workers)
    assert data["is_parallel"] is shown.is_parallel is (not warned)
    assert [one["line"] for one in data["parallelism"]["serial"]] == [one.line for one in warned]
    assert f'o-badge o-{badge}">' in page.split("</h3>")[0]
    assert not ("all of the work runs on one worker" in page and ", parallel" in page)


def test_an_inspection_that_finds_one_tile_makes_no_parallel_loop():
    def hops(x, before):
        for i in range(1, x.shape[0]):
            x[i] = 0.5 * x[before[i]] + 1.0

    with orion.session("threads", 2, force_parallel=True):
        shown = orion.parallel_for(hops).plan(np.ones(40), np.maximum(np.arange(40) - 1, 0))
    assert (shown.runs_on, shown.is_parallel) == (1, False)
    assert "serial because in lines " in first_line(shown)


def test_without_sizes_every_one_is_taken_to_be_the_same():
    shown = plan_of(history, symbolic=True)
    told = first_line(plan_text(shown))
    assert "partly parallel, 8 %; one worker runs the rest (every size taken to be 1,000): lines" in told
    assert sum(share.part for share in shares(shown)) == pytest.approx(1.0)


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
@pytest.mark.parametrize("width", [40, 60, 79, 100])
def test_lines_fit_the_width(function, width):
    """What cannot be broken stays whole: source lines, places, and single words."""
    for line in plan_text(plan_of(function), width).splitlines():
        is_quoted = re.match(r" *\d* \|", line) or ".py:" in line
        assert len(line) <= width or is_quoted or " " not in line.strip(), line


def test_the_width_is_that_of_the_terminal(monkeypatch):
    shown = plan(filtered, *long())
    assert max(map(len, str(shown).splitlines())) > 70
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, str(shown).splitlines())) <= 60 + 20
    assert max(len(line) for line in str(shown).splitlines() if "|" not in line) <= 60
    monkeypatch.setenv("COLUMNS", "500")
    assert max(map(len, str(shown).splitlines())) <= 100


def test_check_follows_from_it(tmp_path, capsys):
    from orion.cli.cli import main

    source = tmp_path / "loops.py"
    source.write_text(
        "import numpy as np\nimport orion\n\n\n@orion.parallel_for\n"
        f"{inspect.getsource(filtered)}\n\n"
        "@orion.parallel_for\ndef none(a):\n    a[0] = 2.0\n\n\n"
        "@orion.parallel_for\ndef fine(a):\n    for i in range(a.shape[0]):\n        a[i] = 2.0 * a[i]\n"
    )
    codes = {name: main(["explain", f"{source}:{name}", "--check"]) for name in ("filtered", "none", "fine")}
    assert codes == {"filtered": 1, "none": 1, "fine": 0}
    assert "one worker runs the rest" in " ".join(capsys.readouterr().out.split())


def summed(x, y):
    for i in range(x.shape[0]):
        y[i] = np.exp(x[i]) * np.sin(x[i])
    return np.sum(y)


def test_a_sum_of_a_whole_array_is_told_by_its_length():
    """Not as if a function were called for each element: measured are 1 to 2 % of the work."""
    found = shares(plan(summed, np.ones(1_000_000), np.ones(1_000_000)).function)
    assert [share.part < 0.05 for share in found] == [False, True]


def test_the_filling_of_an_array_that_is_run_with_a_loop_is_no_loop_of_the_source():
    with orion.session("threads", 2, force_parallel=True):
        shown = orion.parallel_for(again).plan(np.ones(3000))
    fused = [loop.form for loop in shown.function.loops if isinstance(loop.form, Fused)]
    own = [member.form.form for form in fused for member in form.members if isinstance(member.form, Member)]
    assert Fill() in own
    written = inspect.getsource(again).count("for i in")
    assert len(shown.loops) == written + 2, "`b = a * b[0]` and `b *= 2` are loops too"
    assert first_line(shown).startswith("again(a): 6 loops, parallel; ")


def test_loops_in_what_a_new_order_runs_once_are_told_of():
    shown = plan(line_search, np.ones(1600), np.ones(1600), 9)
    once = [loop.form for loop in shown.function.loops if isinstance(loop.form, ReorderedSingle)]
    assert [[loop.nest.span.line - first_of(line_search) for loop in form.inside] for form in once] == [[8]]
    assert "it runs as written: at these sizes" in first_line(shown)


def first_of(function):
    return function.__code__.co_firstlineno


def one_pass(X, y, w, rate):
    for i in range(len(X)):
        e = X[i] @ w - y[i]
        w -= rate * e * X[i]


def time_steps(u, v, T):
    for t in range(T):
        for i in range(1, u.shape[0] - 1):
            v[i] = u[i - 1] * t + u[i + 1]
        for i in range(1, u.shape[0] - 1):
            u[i] = v[i]


def nearest(x, centers, top, labels):
    seen = 0
    for i in range(x.shape[0]):
        best, least = 0, np.inf
        for c in range(centers.shape[0]):
            if abs(x[i] - centers[c]) < least:
                best, least = c, abs(x[i] - centers[c])
        seen = seen or top[best]
        labels[i] = best
    return seen


def nearest_ones():
    return np.zeros(100_000), np.zeros(12), np.zeros(12, int), np.zeros(100_000, int)


SERIAL_AROUND = [
    (one_pass, lambda: (np.zeros((500_000, 3)), np.zeros(500_000), np.zeros(3), 0.1), "w", 3),
    (nearest, nearest_ones, "seen", 4),
]


@pytest.mark.parametrize(("function", "given", "name", "inside"), SERIAL_AROUND)
def test_a_serial_loop_with_short_parallel_ones_inside_is_called_serial(function, given, name, inside):
    shown = plan(function, *given())
    told, line = first_line(shown), first_of(function)
    said = (
        f"the loop over `i` is serial as written, as its iterations meet in `{name}`; inside it, line {line + inside}"
    )
    assert "1 loop, serial at these sizes: " in told
    assert f"{said} is parallel, but too short to share at these sizes [ORN120]" in told
    by_line = {one.line - line: one.how for one in shown.tree().lines}
    (outer,) = (one for one in shown.tree().lines if one.depth == 0)
    assert outer.how.startswith("serial because ")
    assert "ORN120" not in outer.how
    if inside in by_line:
        assert re.fullmatch(r"parallel, but too small to share \(.*s\)", by_line[inside])
    assert not shown.loops[0].is_parallel
    assert shown.is_parallel  # inside, at other sizes
    assert '<span class="o-badge o-serial">1 loop, serial at these sizes</span>' in shown._repr_html_()
    assert "blocked by" in str(shown)


def test_a_loop_that_another_order_would_share_out_is_too_small():
    shown = plan(time_steps, np.zeros(50), np.zeros(50), 100)
    assert "1 loop, parallel, but too small to share" in first_line(shown)
    assert "it runs as written: at these sizes, meeting other workers would cost more" in first_line(shown)
    assert shown.tree().lines[0].how.startswith("parallel, but too small to share")


def test_what_would_take_a_thousand_times_as_long_is_not_told_of():
    assert plan(one_pass, np.zeros((500_000, 3)), np.zeros(500_000), np.zeros(3), 0.1).considered == ()


def test_one_round_is_said_to_be_too_small():
    def swept(a, T):
        for _t in range(T):
            for i in range(1, a.shape[0] - 1):
                a[i] = a[i - 1] + a[i + 1]

    with orion.session("threads", 2, force_parallel=True):
        shown = orion.parallel_for(swept).plan(np.zeros(50), 1)
    assert shown.is_parallel
    assert "is serial" not in str(shown)
    assert "the loop has only 1 block for 2 workers [ORN121]" in first_line(shown)


def ranked(x, y):
    xs = np.sort(x)
    for i in range(len(y)):
        y[i] = xs[i]


def test_a_call_that_one_worker_runs_is_told_of_as_that():
    told = first_line(plan(ranked, np.ones(1000), np.ones(1000)))
    line = first_of(ranked) + 1
    assert f"serial because line {line}, `xs = np.sort(x)`, is one call, which one worker runs" in told


def garch(start, returns):
    for k in range(1, start.shape[0]):
        start[k] = np.sqrt(start[k - 1])
    var = start[-1]
    variance = np.empty_like(returns)
    for t in range(len(returns)):
        variance[t] = np.exp(var) + np.log(1.0 + var * var)
        var = 1e-6 + 0.9 * var + 0.08 * returns[t] * returns[t]
    return variance


def test_the_passes_of_a_scan_are_told_of():
    shown = plan(garch, np.ones(300_000), 0.01 * np.random.default_rng(1).normal(size=600_000))
    told, line = first_line(shown), first_of(garch) + 5
    assert re.search(r"2 loops, partly parallel, \d+ %; one worker runs the rest: ", told)
    assert f"also on one worker: what is handed on between the passes of the scan in line {line}" in told
    parts = {type(one.loop.form).__name__ + str(one.loop.runs_on): one.part for one in shares(shown.function)}
    first, between = percent(parts["Fill2"]), percent(parts["Fill1"])
    text = " ".join(str(shown).split())
    said = (
        f"a first pass over its blocks of 2,048 iterations ({first} of the work), and one from block to block on one "
        f"worker ({between}), find what each block begins with"
    )
    assert 0.05 < parts["Fill2"] / parts["Written2"] < 0.5  # of an iteration it does what `var` needs
    assert f"scans var, handed on: {said}" in text
    assert said in html.unescape(shown._repr_html_())


def test_blocks_of_a_scan_are_predicted_as_the_loop_is():
    """Not as if all groups of a block were whole loops, each block overflowed, and each had the rest of the loop."""
    written = plan(garch, np.ones(3), np.ones(100_000)).function  # too short for blocks
    in_blocks = plan(garch, np.ones(3), np.ones(600_000)).function
    assert in_blocks.loops[-1].nest.function.in_blocks != written.loops[-1].nest.function.in_blocks
    assert predicted_ns(in_blocks) < 1.6 * 6 * predicted_ns(written)


def sines_and_a_sum(A, top):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = np.sin(A[i, j])
    return np.sum(top)


def seconds_where(shown, alone):
    """Seconds of a call by which loops that one worker runs have the part `alone`."""
    parts = [(share.loop.nest.span, runs_alone(share.loop, 2)) for share in shares(shown.function)]
    each = [(span, (alone if own else 1 - alone) / sum(other == own for _, other in parts), own) for span, own in parts]
    return seconds_of(1.0, each)


def test_seconds_say_which_part_of_the_time_is_shared_out():
    """The headline has the part that the lines under it add up to, not that of the predicted work."""
    shown = plan(sines_and_a_sum, np.ones((3000, 1000)), np.ones(2000))
    assert "parallel; all of the work is shared out among 2 workers" in first_line(shown)
    for alone, words in [(0.11, "89 % of the time"), (0.004, "over 99 % of the time"), (0.0, "all of the time")]:
        tree = shown.tree(seconds_where(shown, alone))
        assert tree.verdict.endswith(f"parallel; {words} is shared out among 2 workers")
        assert tree.shared == pytest.approx(1 - alone)
        assert f"{words} is shared out" in plan_html(shown.function, [None] * len(shown.loops), tree)
        assert f"{words} is shared out" in plan_to_dict(shown.function, tree)["where"]
        last = next(line for line in tree.lines if line.how == "once, on one worker")
        assert last.share == pytest.approx(alone)


def test_seconds_say_how_much_of_a_partly_parallel_function_is_shared_out():
    shown = plan(small_then_large, np.ones(1000), np.ones(1000), np.ones((1000, 1000)))
    assert "partly parallel, 70 %; one worker runs the rest: " in shown.tree(seconds_where(shown, 0.3)).verdict


def test_the_last_run_says_which_part_of_its_time_was_shared_out():
    loop = orion.parallel_for(sines_and_a_sum)
    with orion.session("threads", 2), orion.profile():
        loop(np.ones((3000, 1000)), np.ones(2000))
    run = loop.last_run
    assert re.search(r"(all|over 99 %|\d+ %) of the time is shared out among 2 workers", run.verdict)
    assert run.verdict in " ".join(str(run).split())
