"""A part of the site whose `index.md` lists its pages in text has them in the navigation, too, in the same order."""

import re

LINK = re.compile(r"\]\(([\w-]+)\.md\)")
TREE = ":::{toctree}\n:hidden:\n:glob:\n\n"


def setup(app):
    app.connect("source-read", add_tree)
    return {"parallel_read_safe": True}


def add_tree(app, name, source):
    """Add a list of pages where there is none: first those that the text links, then all others of the folder."""
    if name.endswith("/index") and "{toctree}" not in source[0]:
        source[0] += "\n\n" + TREE + "\n".join([*dict.fromkeys(LINK.findall(source[0])), "*"]) + "\n:::\n"
