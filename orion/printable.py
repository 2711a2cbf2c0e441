"""Text in the characters that standard output has: a `print` of it raises nothing."""

from __future__ import annotations

import sys

IN_ASCII = str.maketrans({"µ": "u", "×": "x", "−": "-", "–": "-", "→": "->", "…": "...", "≤": "<=", "≥": ">="})


def printable(text: str) -> str:
    """Return the text, with other characters instead of those that standard output cannot carry."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeError:
        return text.translate(IN_ASCII).encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:  # a stream of somebody else's making
        pass
    return text
