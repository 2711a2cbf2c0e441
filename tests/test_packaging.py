"""What Orion says of itself: version, license, changes, versions of Python and of dependencies, workflows."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import orion

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"uses: \S+@[0-9a-f]{40} # v[\d.]+$")


def test_there_is_one_version():
    """In `orion/__init__.py`, which the build reads."""
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    assert f"\n## [{orion.__version__}] - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert "\nversion:" not in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_changelog_has_the_headings_of_keep_a_changelog():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.startswith("# Changelog\n")
    for line in re.findall("^##+ .*", text, re.MULTILINE):
        version = re.fullmatch(r"## \[(Unreleased|\d+\.\d+\.\d+)\]( - (\d{4}-\d\d-\d\d|not released yet))?", line)
        assert version or line[4:] in ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"), line


def test_the_license_is_whole_and_named():
    assert PROJECT["license"] == "Apache-2.0"
    (name,) = PROJECT["license-files"]
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text.split()[:6] == ["Apache", "License", "Version", "2.0,", "January", "2004"]
    assert "9. Accepting Warranty or Additional Liability." in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_readme_names_the_wheel_that_is_built():
    wheel = f"{PROJECT['name'].replace('-', '_')}-{orion.__version__}-py3-none-any.whl"
    assert wheel in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_oldest_versions_are_the_lower_bounds():
    """Those of `constraints-oldest.txt`, which is what was tried, and those that are written down for pip."""
    optional = PROJECT["optional-dependencies"]
    bounds = [*PROJECT["dependencies"], *optional["ray"], *optional["files"], *optional["notebook"]]
    lines = (ROOT / "constraints-oldest.txt").read_text().splitlines()
    tried = dict(line.split("==") for line in lines if not line.startswith("#"))
    asked = dict(bound.split(">=") for bound in bounds)
    assert tried.keys() == asked.keys()
    for name, bound in asked.items():
        assert tried[name] == bound or re.fullmatch(re.escape(bound) + r"(\.0)+", tried[name]), name


def test_the_versions_of_python_are_those_that_ci_tries():
    prefix = "Programming Language :: Python :: 3."
    named = [one.removeprefix(prefix[:-2]) for one in PROJECT["classifiers"] if one.startswith(prefix)]
    assert named[0] == PROJECT["requires-python"].removeprefix(">=")
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
    for job in (ci["tests"], ci["packages"], release["try"]):
        assert job["strategy"]["matrix"]["python"] == named


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_and_may_only_read(path):
    text = path.read_text(encoding="utf-8")
    for line in re.findall(r"uses: .*", text):
        assert PINNED.fullmatch(line), line
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}


def test_workflows_call_commands_that_there_are():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {name for path in WORKFLOWS for name in re.findall(r"run: make ([a-z-]+)", path.read_text())}
    nightly = yaml.safe_load((ROOT / ".github" / "workflows" / "nightly.yml").read_text())["jobs"]["run"]
    called |= {one["name"] for one in nightly["strategy"]["matrix"]["include"]}
    assert called
    assert called <= targets


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem
)
def test_issue_forms_have_what_github_asks_of_them(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    identities = [part["id"] for part in form["body"]]
    assert len(identities) == len({*identities})
    for part in form["body"]:
        assert part["type"] in ("textarea", "input", "dropdown", "checkboxes")
        assert part["attributes"]["label"]


def test_the_sdist_names_all_files_of_the_project():
    """Each tracked file that is none of the package stands in MANIFEST.in, or is for GitHub and git alone."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not listed:
        pytest.skip("no copy of git's")
    lines = [line.split() for line in (ROOT / "MANIFEST.in").read_text().splitlines()]
    named = {name for kind, *names in lines if kind in ("include", "graft") for name in names}
    by_themselves = {"orion", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"}
    apart = {".github", ".ci", ".gitignore"}
    assert {name.partition("/")[0] for name in listed} - named - by_themselves == apart
