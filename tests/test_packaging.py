"""What an installed Orion says of itself: version, license, changes."""

import tomllib
from pathlib import Path

import orion

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_there_is_one_version():
    """In `orion/__init__.py`, which the build reads."""
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    assert f"## {orion.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


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
