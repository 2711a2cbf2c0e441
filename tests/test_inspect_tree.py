"""The tree of the source's loops: what every view of a plan and of a run shows first."""

import io
import json
import linecache
import re
import sys
import warnings

import numpy as np
import pytest

import orion
from benchmarks.everyday.factors import word2vec
from orion.inspect.text.fors import each_for
from orion.inspect.text.text import NARROWEST, WIDTH, plan_text, tree_text
from orion.inspect.tree.html import tree_table
from orion.inspect.tree.text import shortened, totals, tree_lines
from orion.inspect.tree.view import MOST, Tree, TreeLine, tree_of
from orion.plan.called import code_of
from orion.plan.source_plans import loops_of_source
from tests.inspect_loops import CASES, plan_of

LONG = 2_000_000


def plan(function, *arguments, workers=2):
    with orion.session("threads", workers):
        return orion.parallel_for(function).plan(*arguments)


def lines_of(shown) -> list[tuple[int, int, str, str]]:
    """Depth, lines after the `def`, text and how of each loop."""
    first = shown.function.program.function.source.first_line
    return [(one.depth, one.line - first, one.text, one.how) for one in shown.tree().lines]


def running(a, b):
    s = 0.0
    for i in range(a.shape[0]):
        s = s + a[i]
        b[i] = s


def doubled(a):
    for i in range(a.shape[0]):
        a[i] = 2.0 * a[i]


def chained(a):
    for i in range(1, a.shape[0]):
        a[i] = np.sqrt(a[i - 1])


def rounds(a, b, n):
    for t in range(n):
        for i in range(1, a.shape[0] - 1):
            b[i] = a[i - 1] + a[i + 1] + t
        s = 0.0
        for i in range(a.shape[0]):
            s += b[i]
        a[0] = s


def columns(a):
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = 0.5 * a[i - 1, j] + a[i, j]


def with_statements(a, b, c):
    c[:] = a * 2.0 + b
    a[1:] += c[1:]


def under_condition(a, flag):
    for i in range(a.shape[0]):
        a[i] += 1.0
    if flag > 0:
        for j in range(a.shape[0]):
            a[j] *= 2.0


def over_two_lines(a, shift):
    for i in range(
        shift,
        a.shape[0],
    ):
        a[i] = 2.0 * a[i]


# ---------------------------------------------------------------- how a loop runs


def test_a_single_loop():
    assert lines_of(plan(doubled, np.ones(LONG))) == [(0, 1, "for i in range(a.shape[0])", "parallel")]


def test_a_serial_loop_says_why():
    ((_, _, _, how),) = lines_of(plan(chained, np.ones(LONG)))
    assert how == "serial because iterations meet in `a` [ORN101]"


def test_what_is_too_small_says_how_small():
    ((_, _, _, how),) = lines_of(plan(doubled, np.ones(100)))
    assert re.fullmatch(r"parallel, but too small to share \([\d.]+ µs\)", how)


def test_a_nest_has_a_line_for_each_loop():
    with orion.session("threads", 2, force_parallel=True):
        shown = orion.parallel_for(columns).plan(np.ones((50, 400)))
    first, second = lines_of(shown)
    assert first == (0, 1, "for i in range(1, a.shape[0])", "parallel, along j")
    assert second[:3] == (1, 2, "for j in range(a.shape[1])")
    assert re.fullmatch(r"\d+ blocks, shared out", second[3])


def test_a_scan_is_one_line_in_the_words_of_the_rewrite():
    shown = plan(running, np.ones(LONG), np.ones(LONG))
    (line,) = shown.tree().lines
    assert line.how == "parallel, scan in two passes over blocks of 2,048"
    assert line.share == pytest.approx(1.0)
    assert len(line.parts) == 3
    assert all("on 2 workers" in part or "on 1 worker" in part for part in line.parts)


def test_a_serial_loop_around_others():
    found = lines_of(plan(rounds, np.ones(LONG), np.ones(LONG), 10))
    assert [one[:3] for one in found] == [
        (0, 1, "for t in range(n)"),
        (1, 2, "for i in range(1, a.shape[0] - 1)"),
        (1, 5, "for i in range(a.shape[0])"),
    ]
    assert [one[3] for one in found] == ["one round after another", "parallel", "parallel"]


@pytest.mark.parametrize("function", [rounds, *CASES], ids=lambda function: function.__name__)
def test_rounds_are_told_of_alike_in_the_tree_and_at_each_loop(function):
    if function is rounds:
        shown = plan(rounds, np.ones(LONG), np.ones(LONG), 10).function
        assert tree_of(shown).lines[0].how == "one round after another"
    else:
        shown = plan_of(function)
    how = {line.line: line.how for line in tree_of(shown).lines}
    for loop in loops_of_source(shown):
        for one in each_for(loop, shown):
            assert not one.is_around or one.words.split("; ")[1] == how[one.span.line]


def test_a_statement_inside_is_no_for():
    words = np.zeros((100, 7), np.int64)
    shown = plan(word2vec, words[:, 0], words[:, 1], words[:, 2:], np.ones((50, 16)), np.ones((50, 16))).function
    source = shown.program.function.source
    rows = [code_of(source, one.span.line) for loop in loops_of_source(shown) for one in each_for(loop, shown)]
    assert rows
    assert all(row.startswith("for ") for row in rows)


def test_array_statements_that_run_as_loops_have_lines():
    found = lines_of(plan(with_statements, np.ones(LONG), np.ones(LONG), np.ones(LONG)))
    assert ("c[:] = a * 2.0 + b" in [one[2] for one in found]) or found == []
    assert all(one[0] == 0 for one in found)


def test_a_loop_after_a_loop_and_under_a_condition_is_not_inside_of_the_first():
    found = lines_of(plan(under_condition, np.ones(LONG), 1))
    assert [one[:3] for one in found] == [
        (0, 1, "for i in range(a.shape[0])"),
        (0, 4, "for j in range(a.shape[0])"),
    ]


def test_a_header_over_several_lines_is_one():
    ((_, _, text, _),) = lines_of(plan(over_two_lines, np.ones(LONG), 1))
    assert text == "for i in range( shift, a.shape[0], )"


def helper(a, i):
    s = 0.0
    for j in range(a.shape[1]):
        s += a[i, j]
    return s


def whole(a, b):
    for k in range(a.shape[0]):
        b[k] = 0.5 * a[k]


def with_helpers(a, x, y, out):
    whole(x, y)
    for i in range(a.shape[0]):
        out[i] = helper(a, i)


def test_loops_of_helpers_stand_where_they_are_called():
    shown = plan(with_helpers, np.ones((1000, 2000)), np.ones(LONG), np.ones(LONG), np.ones(1000))
    assert [line.text for line in shown.tree().lines] == [
        "for k in range(a.shape[0])",
        "for i in range(a.shape[0])",
    ]


def until_small(a, b, rounds):
    for _t in range(rounds):
        for i in range(a.shape[0]):
            b[i] = a[i]
        error = 1.0
        while error > 0.1:
            error *= 0.5
            for i in range(a.shape[0]):
                a[i] = 0.5 * a[i] + error
        a[0] += 1.0


def test_a_while_around_loops_has_a_line():
    found = lines_of(plan(until_small, np.ones(LONG), np.ones(LONG), 3))
    assert [one[:3] for one in found] == [
        (0, 1, "for _t in range(rounds)"),
        (1, 2, "for i in range(a.shape[0])"),
        (1, 5, "while error > 0.1"),
        (2, 7, "for i in range(a.shape[0])"),
    ]


NAMES = re.compile(r"\b\w*(?:_before|_parts|_block|_start|_copy)\w*")


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_every_for_has_a_line_and_no_name_is_new(function):
    shown = plan_of(function)
    tree, source = tree_of(shown), shown.program.function.source
    written = {word for line in source.lines for word in re.findall(r"\w+", line)}
    assert [line.line for line in tree.lines] == [one.line for one in shown.program.function.fors]
    for line in tree.lines:
        assert line.text == source.line(line.line).strip().removesuffix(":")
        assert line.how
        assert set(re.findall(r"`(\w+)", line.how)) <= written
        assert not NAMES.search(" ".join([line.how, *line.parts]))


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
@pytest.mark.parametrize("workers", [1, 2, 64])
def test_parallel_and_one_worker_stand_beside_each_other_with_the_reason_alone(function, workers):
    for line in tree_of(plan_of(function, workers=workers)).lines:
        if line.how.startswith("parallel"):
            assert "one worker" not in line.how
        if line.how.startswith("serial"):
            assert line.how.startswith("serial because ")


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_shares_add_up(function):
    shares = [line.share for line in tree_of(plan_of(function)).lines if line.share is not None]
    assert 0.98 < sum(shares) < 1.0 + 1e-9


# ---------------------------------------------------------------- seconds


def test_nothing_is_predicted_before_anything_was_measured():
    tree = plan(doubled, np.ones(LONG)).tree()
    assert (tree.predicted, tree.measured) == (None, None)
    assert "predicted" not in tree_text(tree)


def test_seconds_are_predicted_where_the_function_was_measured():
    loop = orion.parallel_for(running)
    a, b = np.ones(LONG), np.ones(LONG)
    with orion.session("threads", 2):
        loop.measure(a, b)
        shown = loop.plan(a, b)
        tree = shown.tree()
    assert tree.predicted == pytest.approx(shown.estimate().seconds)
    assert 0 < tree.lines[0].predicted <= tree.predicted
    assert "predicted" in str(shown)
    assert "<th>predicted</th>" in shown._repr_html_()


def test_a_run_is_the_same_picture_with_seconds():
    loop = orion.parallel_for(rounds)
    a, b = np.ones(LONG), np.ones(LONG)
    with orion.session("threads", 2), orion.profile():
        loop(a, b, 3)
    run = loop.last_run
    text = str(run)
    assert "; last run " in text.split("\n  line", maxsplit=1)[0].replace("\n    ", " ")
    assert re.search(r"^  line  loop +how +share +measured$", text, re.M)
    tree = run.plan.tree(run._seconds())
    measured = {line.line: line.how for line in tree.lines}
    assert {line.line: line.how for line in run.plan.tree().lines}.items() <= measured.items()
    assert tree.measured == run.seconds
    assert 0 < sum(line.measured or 0.0 for line in tree.lines) <= run.seconds
    assert "<th>measured</th>" in run._repr_html_()


def through_arrays(a, b):
    scale = np.sqrt(np.var(b))
    c = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        c[i] = scale * a[i]
    return c


def test_a_run_has_the_rows_of_its_plan_and_shares_of_its_seconds():
    loop = orion.parallel_for(through_arrays)
    a, b = np.ones(LONG), np.ones(1000)
    with orion.session("threads", 2), orion.profile():
        loop.measure(a, b)
        before = loop.plan(a, b).tree()
        loop(a, b)
    run = loop.last_run
    after = run.plan.tree(run._seconds())
    first = through_arrays.__code__.co_firstlineno
    assert [line.line - first for line in before.lines] == [1, 3]
    assert [line.line for line in after.lines] == [line.line for line in before.lines]
    for tree, name in ((before, "predicted"), (after, "measured")):
        seconds = [getattr(line, name) or 0.0 for line in tree.lines]
        assert [line.share for line in tree.lines] == pytest.approx([one / sum(seconds) for one in seconds])


def test_a_measured_function_without_a_prediction_says_why():
    tree = Tree("f(a)", "1 loop, parallel", (), unpredicted="nothing is known of it")
    assert totals(tree) == "; no prediction: nothing is known of it"


def test_a_run_without_times_is_a_tree_without_them():
    loop = orion.parallel_for(doubled)
    loop(np.ones(LONG))
    text = str(loop.last_run)
    assert "measured" not in text.split("\n\n", maxsplit=1)[0]
    assert "orion.profile()" in text
    assert "<table" in loop.last_run._repr_html_()


# ---------------------------------------------------------------- text


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
@pytest.mark.parametrize("width", [NARROWEST, 52, 79, WIDTH])
def test_the_tree_fits_the_width_and_breaks_no_word(function, width):
    shown = plan_of(function)
    tree = tree_of(shown)
    found = tree_lines(tree, width)
    assert max(map(len, found)) <= width
    assert all(line == line.rstrip() for line in found)
    words = {word for line in tree.lines for word in re.findall(r"\w+", f"{line.text} {line.how} {line.line}")}
    heads = {"line", "loop", "how", "share", "100", "99", "1"}
    assert {word for line in found for word in re.findall(r"\w+", line)} <= words | heads | set(map(str, range(101)))


def test_a_header_is_shortened_between_words():
    text = "for very_long_name, other_name in zip(first_array, second_array)"
    for length in range(3, len(text) + 2):
        short = shortened(text, length)
        assert len(short) <= length
        assert set(re.findall(r"\w+", short)) <= set(re.findall(r"\w+", text))


def test_the_tree_stands_first():
    text = str(plan(rounds, np.ones(LONG), np.ones(LONG), 10))
    first, *_ = text.split("\n\n")
    assert "for t in range(n)" in first
    assert first.count("for i in range(") == 2


SIXTY = "def sixty(a):\n" + "".join(
    f"    for i{k} in range(a.shape[0] // {61 - k}):\n        a[i{k}] += {k}.0\n" for k in range(60)
)


def made(text, name, file):
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    space = {"np": np, "orion": orion}
    exec(compile(text, file, "exec"), space)
    return space[name]


def test_sixty_loops_are_ten_lines():
    shown = plan(made(SIXTY, "sixty", "<sixty>"), np.ones(10_000_000), workers=64)
    lines = tree_lines(shown.tree(), WIDTH)
    assert len(lines) == 1 + MOST + 1
    assert lines[-1] == "  … and 50 more"
    assert "for i59 in" in "\n".join(lines)  # the longest
    assert len(shown.to_dict()["tree"]["lines"]) == 60
    page = shown._repr_html_()
    assert page.count("<section>") == MOST
    assert len(page.encode()) < 100_000


def test_of_many_loops_those_with_most_work_are_shown_under_the_loops_around_them():
    around = TreeLine(1, 0, "for t in range(n)", "rounds overlap")
    inside = [TreeLine(k, 1, f"for i{k} in a", "parallel", share=0.1, weight=k / 1000) for k in range(2, 40)]
    shown, left = Tree("f(a)", "", (around, *inside)).shown()
    assert (len(shown), left) == (MOST, 29)
    assert shown[0] is around
    assert [line.line for line in shown[1:]] == list(range(31, 40))


def test_the_plan_is_printed_in_ascii(monkeypatch):
    shown = plan(running, np.ones(LONG), np.ones(LONG))
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", "40")
    text = str(shown)
    text.encode("ascii")
    assert max(map(len, text.split("\n\n", maxsplit=1)[0].splitlines())) <= 40


# ---------------------------------------------------------------- data and HTML


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_the_data_has_the_tree(function):
    from orion.inspect.data import plan_to_dict

    found = plan_to_dict(plan_of(function))["tree"]
    assert found == json.loads(json.dumps(found))
    lines = tree_of(plan_of(function)).lines
    assert [(one["line"], one["text"], one["how"]) for one in found["lines"]] == [
        (one.line, one.text, one.how) for one in lines
    ]


def test_html_has_the_tree_with_folds_before_the_rest():
    page = plan(running, np.ones(LONG), np.ones(LONG))._repr_html_()
    table = re.search(r'<table class="o-tree">.*?</table>', page)[0]
    assert page.index(table) < page.index('class="o-source"')
    assert "<details><summary>" in table
    assert "for i in range(a.shape[0])" in table


def test_html_escapes_what_the_user_wrote():
    line = TreeLine(3, 0, "for i in range(a < b)", "serial because `a<b>` & more", ("`x<y>`",), 1.0)
    table = tree_table(Tree("f(a)", "", (line,)))
    assert "a &lt; b" in table
    assert "<code>a&lt;b&gt;</code> &amp; more" in table
    assert "<b>" not in table


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_a_page_for_64_workers_is_small(function):
    from orion.inspect.html.html import plan_html
    from tests.inspect_loops import schedules_of

    shown = plan_of(function, workers=64)
    assert len(plan_html(shown, schedules_of(shown, function, 64)).encode()) < 100_000


# ---------------------------------------------------------------- where the source is


def test_a_cell_that_was_edited_and_run_again():
    text = "def cell(a):\n    for i in range(a.shape[0]):\n        a[i] = 2.0 * a[i]\n"
    before = plan(made(text, "cell", "<ipython-input-1-abc>"), np.ones(LONG))
    changed = text.replace("for i in range(a.shape[0])", "for row in range(len(a))").replace("[i]", "[row]")
    after = plan(made("\n\n" + changed, "cell", "<ipython-input-2-abc>"), np.ones(LONG))
    assert [(one.line, one.text) for one in before.tree().lines] == [(2, "for i in range(a.shape[0])")]
    assert [(one.line, one.text) for one in after.tree().lines] == [(4, "for row in range(len(a))")]


def test_a_file_that_was_deleted(tmp_path):
    path = tmp_path / "gone.py"
    path.write_text("def gone(a):\n    for i in range(a.shape[0]):\n        a[i] = 2.0 * a[i]\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    loop = orion.parallel_for(space["gone"])
    shown = loop.plan(np.ones(LONG))
    path.unlink()
    linecache.checkcache()
    assert "for i in range(a.shape[0])" in str(shown)
    assert "for i in range(a.shape[0])" in str(loop.plan(np.ones(LONG)))


def test_a_file_in_a_zip(tmp_path, monkeypatch):
    import zipfile

    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr(
            "packed_loop.py", "def packed(a):\n    for i in range(a.shape[0]):\n        a[i] = 2.0 * a[i]\n"
        )
    monkeypatch.syspath_prepend(str(tmp_path / "packed.zip"))
    from packed_loop import packed

    ((_, line, text, how),) = lines_of(plan(packed, np.ones(LONG)))
    assert (line, text, how) == (1, "for i in range(a.shape[0])", "parallel")


# ---------------------------------------------------------------- what a call would refuse


def copied(a, b):
    for i in range(a.shape[0]):
        b[i] = 2.0 * a[i]


def beyond(a, b):
    for i in range(a.shape[0]):
        b[i + 1] = 2.0 * a[i]


def overlapping():
    a = np.ones(100)
    return a[:-1], a[1:]


REFUSED = [
    (copied, overlapping),
    (beyond, lambda: (np.ones(100), np.ones(100))),
    (copied, lambda: (np.ones(100), np.ones(99))),
    (copied, lambda: (np.ones(100, np.float16), np.ones(100))),
    (copied, lambda: (np.ones(100, object), np.ones(100))),
]


@pytest.mark.parametrize(("function", "given"), REFUSED)
def test_a_plan_refuses_what_the_call_refuses(function, given):
    loop = orion.parallel_for(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            loop(*given())
        except Exception as error:
            refused = type(error), str(error)
        else:
            refused = None
    if refused is None:
        pytest.skip("the call is not refused")
    with pytest.raises(refused[0]) as found:
        loop.plan(*given())
    assert str(found.value) == refused[1]


def test_no_view_writes_the_headline_in_another_way():
    shown = plan(doubled, np.ones(100))
    assert "parallel, but too small to share (1.0 µs)" in plan_text(shown.function)
    assert "parallel, but too small to share (1.0 µs)" in shown._repr_html_()


# ---------------------------------------------------------------- Mermaid


def two_statements(a, b):
    for i in range(1, a.shape[0]):
        a[i] = np.sqrt(b[i - 1])
        b[i] = a[i] + 1.0


def test_the_dependence_graph_as_mermaid_text():
    text = plan(two_statements, np.ones(100), np.ones(100)).to_mermaid()
    first = two_statements.__code__.co_firstlineno
    head, *lines = text.splitlines()
    assert head == "flowchart TD"
    assert lines[0] == f'    s0["{first + 2}: a[i] = np.sqrt(b[i - 1])"]'
    assert '    s1 -->|"b: flow (1)"| s0' in lines
    assert len(lines) == len(set(lines))


def test_a_loop_without_dependences_has_an_empty_graph():
    assert plan(doubled, np.ones(100)).to_mermaid() == "flowchart TD"


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_labels_have_no_quotes_inside(function):
    from orion.dependence.graph import dependence_graph
    from orion.inspect.mermaid import mermaid_text

    shown = plan_of(function)
    found = [d for loop in shown.loops for d in loop.dependences]
    text = mermaid_text(dependence_graph(found, shown.program.function.body), shown.program.function)
    assert all(line.count('"') == 2 for line in text.splitlines()[1:])
