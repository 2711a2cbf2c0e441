"""The site is built without a warning, its notebooks are executed, it has a page for what the reference promises, its
links lead somewhere, and its pages need no scripts."""

import argparse
import doctest
import importlib.util
import json
import re
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest

import orion
from orion.cli import cli
from orion.reasons import CODES
from tests.test_documentation import CELL, ROOT, blocks, expected

pytestmark = pytest.mark.timeout(1200)

DOCS = ROOT / "docs"
TUTORIALS = sorted(path for path in (DOCS / "tutorials").glob("*.md") if path.stem != "index")
MOST_SECONDS = 900
"""For a build on a machine that does much else."""

VARIABLE = re.compile(r"\bORION_[A-Z][A-Z0-9_]*\b")
LOADED = {"script": "src", "link": "href", "img": "src"}
"""What a page loads by itself, by elements and their attributes."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a build in which any warning is an error; Sphinx is among what `dev` installs."""
    done, folder = built(DOCS, tmp_path_factory.mktemp("site"))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(r"^\d+ pages in \d+ s; 6 of 6 notebooks executed, in \d+ s; \d+ blocks", done.stdout)
    return folder


def built(source, folder):
    """A build of the pages in `source` by the configuration of the site, and the folder of its pages."""
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", "-c", DOCS]
    command += [source, folder / "html"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MOST_SECONDS)
    return done, folder / "html"


class Page(HTMLParser):
    """What is looked at of a page: names that links can lead to, links, files that it loads, and text by element."""

    def __init__(self, text):
        super().__init__()
        self.names, self.links, self.loads, self.prose, self.code = set(), [], [], [], []
        self._open = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.names |= {found["id"]} if "id" in found else set()
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if found.get(LOADED.get(tag)) and found.get("rel") not in ("index", "search", "next", "prev", "canonical"):
            self.loads.append(found[LOADED[tag]])
        if tag in ("p", "code", "pre"):
            self._open.append(tag)

    def handle_endtag(self, tag):
        if self._open and tag == self._open[-1]:
            self._open.pop()
            self.code.append("\n" if tag == "code" else "")

    def handle_data(self, data):
        if self._open:
            (self.prose if self._open[-1] == "p" else self.code).append(data)


@cache
def page(path):
    return Page(path.read_text(encoding="utf-8"))


def pages(folder):
    found = sorted(folder.rglob("*.html"))
    assert len(found) > 100
    return found


# ---------------------------------------------------------------- the whole site


def test_links_inside_of_the_site_lead_somewhere(site):
    for path in pages(site):
        for link in page(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path}: {link}"
            if parts.fragment and target.suffix == ".html":
                assert unquote(parts.fragment) in page(target).names | {""}, f"{path}: {link}"


def test_pages_load_nothing_from_elsewhere(site):
    for path in pages(site):
        loaded = page(path).loads
        assert loaded
        assert [one for one in loaded if urlsplit(one).scheme not in ("", "data") or urlsplit(one).netloc] == []


def test_each_page_is_in_a_list(site):
    """A page that no list names is warned of by Sphinx; a part without a list of its pages has no place."""
    parts = {path.parent for path in DOCS.rglob("*.md") if "_build" not in path.parts}
    assert [part for part in parts if not (part / "index.md").is_file()] == []


def test_a_part_that_lists_its_pages_in_text_has_them_in_that_order():
    source = ["# A part\n\nFirst [b](b.md), then [a](a.md) and [b](b.md), not [c](../c.md)."]
    module_of("listed_pages").add_tree(None, "part/index", source)
    assert source[0].endswith(":::{toctree}\n:hidden:\n:glob:\n\nb\na\n*\n:::\n")
    have = [":::{toctree}\n*\n:::\n"]
    module_of("listed_pages").add_tree(None, "part/index", have)
    assert have == [":::{toctree}\n*\n:::\n"]


def test_names_in_texts_lead_to_their_pages(site):
    links = page(site / "reference" / "environment.html").links
    assert "interface/init.html#orion.init" in links
    links = page(site / "reference" / "reasons" / "ORN101.html").links
    assert {"ORN104.html", "ORN124.html"} <= {*links}
    assert "../reference/reasons/ORN102.html" in page(site / "guides" / "reading-a-plan.html").links


# ---------------------------------------------------------------- notebooks


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_is_executed_and_offered_with_its_outputs(site, path):
    shown = page(site / "tutorials" / f"{path.stem}.html")
    (link,) = (one for one in shown.links if one.endswith(".ipynb"))
    notebook = json.loads((site / "tutorials" / link).read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    written = [block.text for block in blocks(path) if block.language == CELL]
    assert ["".join(cell["source"]) + "\n" for cell in cells] == written
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    printed = ["".join(one["text"]) for cell in cells for one in cell["outputs"] if one.get("name") == "stdout"]
    assert printed
    lines = iter("".join(printed).splitlines())
    assert [line for line in expected(blocks(path)) if line not in lines] == []
    code = "".join(shown.code)
    assert [text for text in printed if text.strip() not in code] == []


def test_an_error_or_a_warning_in_a_cell_fails_the_build(tmp_path):
    cells = {"error": "1 / 0", "warned": "import warnings\nwarnings.warn('late')", "well": "print(6 * 7)"}
    head = (DOCS / "tutorials" / "stencil.md").read_text(encoding="utf-8").split("# A stencil")[0]
    source = tmp_path / "source"
    source.mkdir()
    (source / "index.md").write_text("# Pages\n\n:::{toctree}\n" + "\n".join(cells) + "\n:::\n", encoding="utf-8")
    for name, cell in cells.items():
        text = f"{head}# {name}\n\n```{CELL}\n{cell}\n```\n"
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    done, folder = built(source, tmp_path)
    assert done.returncode != 0
    failed = re.findall(r"(\w+)\.md: WARNING: Executing notebook failed", done.stderr)
    assert failed == ["error", "warned"]
    assert "ZeroDivisionError" in done.stderr
    assert "UserWarning" in done.stderr
    assert "42" in "".join(page(folder / "well.html").code)


# ---------------------------------------------------------------- without scripts


SCRIPTED = ("script", "canvas", "iframe", "template")


class Static(HTMLParser):
    """What a browser without scripts shows of a page: elements by name, pictures, and what waits for a script."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.pictures, self.waiting = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        self.pictures += [found.get("src")] if tag == "img" else []
        if tag in SCRIPTED or "hidden" in found or "js-only" in found.get("class", ""):
            self.waiting.append((tag, found))
        assert "display: none" not in found.get("style", "")


@orion.parallel_for
def doubled(a):
    for i in range(a.shape[0]):
        a[i] = 2.0 * a[i]


def test_pages_are_whole_without_scripts(site, tmp_path):
    with orion.session(workers=2, force_parallel=True), orion.profile():
        doubled(np.ones(1000))
        orion.report(tmp_path / "report.html")
    tutorial, report = site / "tutorials" / "reading-a-plan.html", tmp_path / "report.html"
    for path in (site / "index.html", site / "gallery" / "physics.html", tutorial, report):
        text = path.read_text(encoding="utf-8")
        found = Static(text if path == report else article(text))
        assert found.waiting == [], path
        assert found.pictures or "svg" in found.tags, path
        assert [one for one in found.pictures if not (path.parent / unquote(one)).is_file()] == []
        if path in (tutorial, report):
            assert text.count("<details>") >= text.count("<summary>The same as text</summary>") >= 1
            assert {"svg", "table", "pre", "style"} <= {*found.tags}


def article(text):
    """The part of a page of the site that the reader came for."""
    return text.partition('<article class="bd-article">')[2].partition("</article>")[0]


# ---------------------------------------------------------------- the reference


def test_each_public_name_has_a_page_and_a_line(site):
    listed = (site / "reference" / "interface" / "index.html").read_text(encoding="utf-8")
    for name in orion.__all__:
        shown = page(site / "reference" / "interface" / f"{name}.html")
        assert f"orion.{name}" in shown.names, name
        assert f'href="{name}.html"' in listed, name
        assert len("".join(shown.prose).split()) > 5, f"{name} has no text"


def test_each_type_of_a_result_has_a_page_to_which_signatures_lead(site):
    folder = site / "reference" / "interface"
    for name in docstrings.TYPES:
        full = docstrings.full_name(name)
        assert full in page(folder / f"{name}.html").names
        assert f"{name}.html" in page(folder / "index.html").links
    assert "Schedule.html#orion.schedule.schedule.Schedule" in page(folder / "Plan.html").links


def test_code_in_docstrings_is_shown_as_code(site):
    for name in (*orion.__all__, *docstrings.TYPES):
        shown = page(site / "reference" / "interface" / f"{name}.html")
        assert "`" not in "".join(shown.prose), name
        assert ">>>" not in "".join(shown.prose), name


def test_each_code_of_a_reason_has_a_page_and_a_line(site):
    listed = (site / "reference" / "reasons" / "index.html").read_text(encoding="utf-8")
    for code, row in CODES.items():
        text = (site / "reference" / "reasons" / f"{code}.html").read_text(encoding="utf-8")
        assert f"<h1>{code}: " in text, code
        assert f'href="{code}.html"' in listed, code
        assert row.title, code


def test_each_command_has_its_arguments(site):
    shown = page(site / "reference" / "command-line.html")
    (found,) = (one for one in cli._parser()._actions if isinstance(one, argparse._SubParsersAction))
    code = "".join(shown.code)
    assert {f"orion {name}" for name in found.choices} <= set(code.splitlines())
    words = set(re.findall(r"(?<!\S)--?[\w-]+", code))
    for command in found.choices.values():
        for action in command._actions:
            shown_as = action.option_strings or [action.metavar]
            assert set(shown_as) <= words | set(code.splitlines()), action


def test_the_table_of_variables_has_those_that_the_code_reads():
    text = (DOCS / "reference" / "environment.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", text, re.MULTILINE)
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "orion").rglob("*.py"))
    assert sorted(name for name, *_ in rows) == sorted({one for text in sources for one in VARIABLE.findall(text)})
    assert all(meaning.strip() and otherwise.strip() for _, meaning, otherwise in rows)


# ---------------------------------------------------------------- docstrings


def module_of(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


docstrings = module_of("docstrings")


def test_its_own_examples_hold():
    assert doctest.testmod(docstrings) == doctest.TestResults(0, 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a `b` c", "a ``b`` c\n"),
        ("`x`s and f(`y`)", "``x``\\ s and f(\\ ``y``\\ )\n"),
        ("*args, name_ and |x|", "\\*args, name\\_ and \\|x\\|\n"),
        ("`a\nb`", "``a b``\n"),
        ("see `orion.buffer`", "see :py:obj:`orion.buffer`\n"),
        ("see `orion.nothing`", "see ``orion.nothing``\n"),
        ("late (docs/guides/late.md)", "late (:doc:`/guides/late`)\n"),
        ("Sum.\n>>> 1 + 1\n2", "Sum.\n\n>>> 1 + 1\n2\n"),
        ("Both:\n- a\n- b", "Both:\n\n- a\n- b\n"),
        ("Args:\n    a: `x`\n        more", "Args:\n\n- a: ``x``\n  more\n"),
        ("So:\n\n    x = 1\n\n    y = 2", "So:\n\n.. code-block:: python\n\n    x = 1\n\n    y = 2\n"),
        ("So:\n\n    $ orion", "So:\n\n.. code-block:: text\n\n    $ orion\n"),
    ],
)
def test_a_docstring_becomes(text, shown):
    assert docstrings.restructured(text) == shown


def test_signatures_have_the_types_of_their_source():
    def function(a: "list[Any]", *, b: "int | None" = None, c: "object" = float) -> "Any": ...

    assert docstrings.as_written(function) == "(a: list[Any], *, b: int | None = None, c: object = float) -> Any"
