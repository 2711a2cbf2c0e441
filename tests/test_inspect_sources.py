"""Plans of functions whose source is where tools lose it: edited cells, `exec`, zips, files that are gone; and of
functions with very many loops."""

import importlib
import linecache
import py_compile
import sys
import time
import zipfile
from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import orion
from orion.inspect.text.words import lines_in_words
from orion.source import without_comment

LOOPS = """\
import numpy as np
import orion


@orion.parallel_for
def running(a):
    for i in range(1, a.shape[0]):  # in order
        a[i] = np.sin(a[i - 1])


def doubled(v):
    return v * 2.0


@orion.parallel_for
def scaled(a):
    for i in range(a.shape[0]):
        a[i] = doubled(a[i])
"""
HEADERS = {"running": "for i in range(1, a.shape[0])", "scaled": "for i in range(a.shape[0])"}

# ---------------------------------------------------------------- cells of a notebook

FIRST = "@orion.parallel_for\ndef f(a):\n    for i in range(a.shape[0]):\n        a[i] = 2.0 * a[i]\n"
REFUSED = (
    "# a comment\n\n@orion.parallel_for\ndef f(a):\n    for row in range(len(a)):\n        a[row] = open('x').read()\n"
)
SERIAL = "@orion.parallel_for\ndef f(a):\n    for row in range(1, len(a)):\n        a[row] = np.sin(a[row - 1])\n"
SHOW = "print(f.explain(np.ones(9)))\nf.plan(np.ones(9))"
RUN = "import warnings\nwarnings.simplefilter('ignore')\na = np.ones(9)\nf(a)\nprint(f.last_run)\nprint(a[1])\nf"
VIEWS = "p = f.plan(np.ones(9))\np.check()\nprint(f.verify(np.ones(9)), p.to_mermaid()[:9], p.to_json()[:1])"


def told_by(client: NotebookClient, at: int, text: str) -> tuple[str, str]:
    """What a cell prints or raises with this text, and the HTML that it shows."""
    cell = client.nb.cells[at]
    cell.source = text
    try:
        client.execute_cell(cell, at)
    except CellExecutionError as error:
        return str(error), ""
    printed = "".join(one.text for one in cell.outputs if one.get("name") == "stdout")
    return printed, "".join(one.data.get("text/html", "") for one in cell.outputs if "data" in one)


def test_a_cell_that_is_edited_and_run_again():
    start = "import numpy as np\nimport orion\n_ = orion.init(workers=2)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("") for _ in range(3)])
    client = NotebookClient(notebook, timeout=240, kernel_name="python3")
    with client.setup_kernel():
        told_by(client, 0, start)
        told_by(client, 1, FIRST)
        text, page = told_by(client, 2, SHOW)
        assert "for i in range(a.shape[0])" in text
        assert "cell In[2], line 2" in text.replace("line 3", "line 2")
        assert "for i in range(" in page
        assert "2.0" in told_by(client, 2, RUN)[0]
        told_by(client, 1, REFUSED)
        text, _ = told_by(client, 2, SHOW)
        assert "cell In[5], line 6: " in text
        assert "   6 |         a[row] = open('x').read()" in text
        told_by(client, 1, SERIAL)
        text, page = told_by(client, 2, SHOW)
        assert "for row in range(1, len(a))" in text
        assert "for i in" not in text + page
        assert "cell In[7], line 3" in text
        assert f"{np.sin(1.0)}"[:8] in told_by(client, 2, RUN)[0]
        text, _ = told_by(client, 2, VIEWS)
        assert "the results are the same" in text
        told_by(client, 1, FIRST)  # the text of another time, and its name
        assert "for i in range(a.shape[0])" in told_by(client, 2, SHOW)[0]


def test_two_cells_with_functions_of_one_name():
    def made(text, file):
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        space = {"np": np, "orion": orion}
        exec(compile(text, file, "exec"), space)
        return space["f"]

    first, then = made(FIRST, "<ipython-input-1-aa>"), made(SERIAL, "/tmp/ipykernel_7/22.py")
    for _ in range(2):
        assert "for i in range(a.shape[0])" in first.explain(np.ones(9))
        assert "this cell, line 3" in then.explain(np.ones(9))
        assert "for row in range(1, len(a))" in then.explain(np.ones(9))


# ---------------------------------------------------------------- functions of no file


def assert_planned(functions):
    for name, header in HEADERS.items():
        found = functions[name].plan(np.ones(50))
        assert [line.text for line in found.tree().lines] == [header]
        assert header in str(found)
        assert found._repr_html_()
        assert found.to_json()
        assert functions[name].kernel_source(np.ones(50))


def assert_refused(functions, said):
    for name in HEADERS:
        with pytest.raises(orion.UnsupportedLoopError) as caught:
            functions[name].plan(np.ones(50))
        assert f"the source of `{name}` cannot be read" in str(caught.value)
        assert said in str(caught.value)


@pytest.mark.parametrize("file", ["<string>", "", "<stdin>", "no such file.py"])
def test_exec_keeps_no_source(file):
    space = {}
    exec(compile(LOOPS, file, "exec"), space)
    assert_refused(space, "define the function in a file or in a notebook cell")


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Imports a module from the folder, which the test alone has."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def imported(name, path=tmp_path):
        monkeypatch.syspath_prepend(str(path))
        importlib.invalidate_caches()
        try:
            return vars(importlib.import_module(name))
        finally:
            sys.modules.pop(name, None)

    return imported


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_zip(is_kept, imported, tmp_path):
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("zipped_loops.py", LOOPS)
    found = imported("zipped_loops", archive)
    if not is_kept:
        archive.unlink()
        linecache.clearcache()
    assert_planned(found)


def test_a_file_that_is_deleted_after_the_import(imported, tmp_path):
    path = tmp_path / "deleted_loops.py"
    path.write_text(LOOPS)
    found = imported("deleted_loops")
    path.unlink()
    linecache.clearcache()
    assert_planned(found)


def test_a_file_that_is_deleted_before_it_is_decorated(imported, tmp_path):
    path = tmp_path / "gone_loops.py"
    path.write_text(LOOPS.replace("@orion.parallel_for\n", ""))
    found = imported("gone_loops")
    path.unlink()
    linecache.clearcache()
    assert_refused({name: orion.parallel_for(found[name]) for name in HEADERS}, f"the file {path} is not there")


def test_a_file_with_other_bytes_than_text(imported, tmp_path):
    path = tmp_path / "bytes_loops.py"
    path.write_text(LOOPS.replace("@orion.parallel_for\n", ""))
    found = imported("bytes_loops")
    path.write_bytes(b"\xff\x00\xfe" * 100)
    linecache.clearcache()
    assert_refused({name: orion.parallel_for(found[name]) for name in HEADERS}, "holds no text of Python")


def test_bytecode_alone(imported, tmp_path):
    path = tmp_path / "source.py"
    path.write_text(LOOPS)
    py_compile.compile(str(path), str(tmp_path / "compiled_loops.pyc"))
    path.unlink()
    assert_refused(imported("compiled_loops"), "install the package with its sources")


def test_form_feeds_end_no_line(imported, tmp_path):
    (tmp_path / "fed_loops.py").write_text("\x0c\n" + LOOPS.replace("\n\n\n", "\n\x0c\n\n"))
    from orion.kernel.build.pickled import from_bytes, to_bytes

    found = imported("fed_loops")
    assert_planned(found)
    plain = found["scaled"].__wrapped__
    data = to_bytes(plain)
    linecache.cache.pop(plain.__code__.co_filename)
    Path(plain.__code__.co_filename).unlink()
    again = from_bytes(data)
    assert linecache.getline(again.__code__.co_filename, again.__code__.co_firstlineno + 2).strip().startswith("for i")


# ---------------------------------------------------------------- very many loops

EACH = {
    "parallel": "    for i{k} in range(a.shape[0]):\n        a[i{k}, 0] += {k}.0\n",
    "serial": "    for i{k} in range(a.shape[0] - 1):  # why\n        a[i{k} + 1, 0] = np.sin(a[i{k}, 0]) + {k}.0\n",
    "fused": "    for i{k} in range(a.shape[0]):\n        for j{k} in range(a.shape[1]):\n"
    + "            a[i{k}, j{k}] += b[i{k}, j{k}] * {k}\n" * 4,
}
LOOPS_OF_ALL = 60


@pytest.mark.parametrize("kind", EACH)
def test_sixty_loops(kind):
    text = "def sixty(a, b):\n" + "".join(EACH[kind].format(k=k) for k in range(LOOPS_OF_ALL))
    file = f"<sixty {kind}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    space = {"np": np}
    exec(compile(text, file, "exec"), space)
    begun = time.process_time()
    with orion.session("threads", 64):
        shown = orion.parallel_for(space["sixty"]).plan(np.ones((3000, 500)), np.ones((3000, 500)))
    assert time.process_time() - begun < 60
    short, whole, page = str(shown), shown.text(), shown._repr_html_()
    assert short.count("\n") < 240
    assert short.count("\n  strategy ") == 10
    assert short.endswith("… and 50 loops more: `print(plan.text())` shows all, as does `orion explain --all`")
    assert whole.count("\n  strategy ") == LOOPS_OF_ALL
    assert all(f"for i{k} in" in whole.split("\n\n")[0] for k in range(LOOPS_OF_ALL))
    assert len(page.encode()) < 100_000
    assert page.count("<section>") == 10
    assert '<td class="o-number">…</td>' in page or text.count("\n") < 150
    assert "# why" not in short.split("\n\n", maxsplit=1)[0]


@pytest.mark.parametrize(
    ("lines", "words"), [(range(1, 25, 2), "lines 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23"),
                         (range(1, 27, 2), "lines 1, 3, 5, 7, 9, 11 and 7 more"), (range(1, 99), "lines 1–98")],
)  # fmt: skip
def test_of_very_many_lines_the_first_are_named(lines, words):
    assert lines_in_words(lines) == words


@pytest.mark.parametrize(
    ("line", "code"),
    [("for i in a:  # x", "for i in a:"), ("a['#'] = \"#\" # '", "a['#'] = \"#\""), (r"a = '\'#'  # b", r"a = '\'#'"),
     ('a = """b # c', 'a = """b # c'), ("", ""), ("# all", "")],
)  # fmt: skip
def test_a_line_without_its_comment(line, code):
    assert without_comment(line) == code
