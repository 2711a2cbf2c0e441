"""The page of a reason code, from `orion/reasons.md`, which installed packages carry too."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from orion.reasons import CODES

CODE = re.compile(r"ORN\d+", re.IGNORECASE)
TITLE = re.compile(r"\A\*\*.*?\.\*\*\s+", re.DOTALL)


def page_of(code: str) -> str | None:
    """The page of a code as Markdown, without a line break at the end; None where there is no such code.

    >>> print(page_of("orn104").splitlines()[0])
    ORN104: a scalar carries a value from one iteration to the next
    """
    return _pages().get(code.upper())


@cache
def _pages() -> dict[str, str]:
    text = (files("orion") / "reasons.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (ORN\d+)\n", text, flags=re.MULTILINE)[1:]
    pairs = zip(sections[::2], sections[1::2], strict=True)
    return {code: f"{code}: {CODES[code].title}\n\n{_without_title(section.strip())}" for code, section in pairs}


def _without_title(section: str) -> str:
    """A section without the sentence in bold that it begins with: that is the title of its code, as a test holds.

    >>> _without_title("**A loop is left early.** Later iterations wait.")
    'Later iterations wait.'
    """
    return TITLE.sub("", section, count=1)
