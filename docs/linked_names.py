"""Names in texts lead to their pages: public names in code, such as `orion.init(workers=2)`, and codes of reasons."""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

import orion
from orion.reasons import CODES

NAME = re.compile(r"orion\.(\w+)(?:\.\w+)?(?:\(.*\))?", re.DOTALL)
CODE = re.compile(r"\b(ORN\d+)\b")
APART = (nodes.title, nodes.reference, nodes.literal_block, nodes.doctest_block, pending_xref)
"""Where nothing links: headings, links, and blocks of code."""


class LinkNames(SphinxTransform):
    """Wraps public names and codes in references."""

    default_priority = 700

    def apply(self, **kwargs):
        for literal in list(self.document.findall(nodes.literal)):
            found = NAME.fullmatch(literal.astext())
            if found and found[1] in orion.__all__ and not is_apart(literal):
                literal.replace_self(self.reference(literal, "py", "obj", f"orion.{found[1]}"))
        for text in list(self.document.findall(nodes.Text)):
            if CODE.search(text) and not is_apart(text):
                self.link_codes(text)

    def link_codes(self, text):
        """Replace a text by parts of it, of which each code but that of this page is a reference."""
        whole = text.parent if isinstance(text.parent, nodes.literal) else text
        if whole is text or text in CODES:  # no code that has other words beside it
            whole.parent.replace(whole, [self.linked(part) for part in CODE.split(text) if part])

    def linked(self, part):
        page = f"reference/reasons/{part}"
        if part not in CODES or page == self.env.docname:
            return nodes.Text(part)
        return self.reference(nodes.inline("", part), "std", "doc", f"/{page}")

    def reference(self, shown, domain, kind, target):
        """A reference that shows a node."""
        link = pending_xref("", shown.deepcopy(), refdomain=domain, reftype=kind, reftarget=target)
        link.update_all_atts({"refdoc": self.env.docname, "refexplicit": True, "refwarn": True})
        return link


def is_apart(node):
    parent = node.parent
    while parent is not None:
        if isinstance(parent, APART):
            return True
        parent = parent.parent
    return False


def setup(app):
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True}
