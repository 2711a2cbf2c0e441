"""The notebook view: complete, escaped, scoped, and without anything that runs or is fetched."""

import re
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser

import pytest

from orion.inspect.html.html import plan_html
from orion.inspect.html.style import STYLE
from orion.inspect.text.text import plan_text
from orion.source import SourceText
from tests.inspect_loops import CASES, permuted, plan_of, rmse, schedules_of, several, sgd_epoch, shift, smooth

VOID = {"br", "meta"}


class Checker(HTMLParser):
    """Collects tags, attributes and text, and sees that every element is closed in the right order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.attributes, self.said = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.said.append(data)


def read(text):
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    return checker


def view(function):
    plan = plan_of(function)
    return plan_html(plan, schedules_of(plan, function))


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_it_is_well_formed_and_runs_and_fetches_nothing(function):
    text = view(function)
    checker = read(text)
    assert not {"script", "link", "img", "iframe", "object"} & set(checker.tags)
    assert not [name for name, _ in checker.attributes if name.startswith("on") or name in ("src", "href")]
    assert "url(" not in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_the_text_form_is_always_there(function):
    text = view(function)
    assert escape(plan_text(plan_of(function))) in text
    assert text.count("<summary>The same as text</summary>") == 1


def test_every_source_line_is_there_with_what_it_reads_and_writes():
    text = view(sgd_epoch)
    rows = re.findall(r"<tr><td class=\"o-number\">(\d+)</td>(.*?)</tr>", text)
    lines = {int(number): unescape(re.sub(r"<[^>]+>", "|", row)) for number, row in rows}
    source = plan_of(sgd_epoch).program.function.source
    assert sorted(lines) == list(range(source.first_line, source.first_line + len(source.lines)))
    parts = [part for part in lines[max(lines)].split("|") if part]
    assert parts[:2] == ["H", "H"]  # reads, writes
    assert "".join(parts[2:]) == "        H[j] += step * (err * wi - reg * H[j])"


def test_what_conflicts_is_marked_in_the_source():
    text = view(sgd_epoch)
    assert text.count('<mark class="o-written">H[j]</mark>') == 1
    assert "<mark>W[i]</mark>.copy()" in text


def test_a_loop_without_conflicts_has_no_marks():
    text = view(rmse)
    assert "<mark" not in text
    assert "none: no two iterations touch the same element" in text
    assert "total: a reduction" in text


def test_each_for_has_its_verdict():
    text = view(smooth)
    assert text.count("carries dependences over A") == 2 + 2  # beside the source, and in the text form
    assert '<span class="o-badge o-parallel">wavefront</span>' in text


def test_a_serial_loop_shows_what_keeps_it_serial_and_what_would_help():
    said = "".join(read(view(permuted)).said)
    assert "What keeps it serial" in said
    assert "W: different iterations, such as i=0 and i=1 ORN102" in said
    assert "What would help: make the subscript a loop variable" in said
    assert "^^^^^^^^^^" in said


def test_reasons_have_their_titles():
    assert 'title="iterations of the loop depend on each other"' in view(shift)


def test_statements_between_loops_have_no_section():
    text = view(several)
    assert text.count("<section>") == 2
    assert text.count("<svg") == 2


def test_source_is_escaped():
    plan = plan_of(shift)
    source = plan.program.function.source
    last = source.lines[-1].replace("W[i + 1]", "W[i < 1]") + "  # <script>alert('&')</script>"
    lines = (*source.lines[:-1], last)
    changed = SourceText(source.file + "<b>", source.first_line, lines)
    function = replace(plan.program.function, source=changed)
    nest = replace(plan.loops[0].nest, function=function)
    loop = replace(plan.loops[0], nest=nest)
    text = plan_html(replace(plan, program=replace(plan.program, function=function), loops=(loop,)), [None])
    assert "<script" not in text
    assert '<mark class="o-written">W[i &lt; 1]</mark>' in text
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)" in text


def test_every_rule_is_scoped():
    for rule in re.findall(r"([^{}]+)\{[^}]*\}", STYLE):
        assert all(selector.strip().startswith(".orion-plan.orion-plan") for selector in rule.split(","))
