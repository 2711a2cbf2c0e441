"""Code in a text that names a public name, such as `orion.buffer` or `orion.init(workers=2)`, links to its page."""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

import orion

NAME = re.compile(r"orion\.(\w+)(?:\.\w+)?(?:\(.*\))?", re.DOTALL)


class LinkNames(SphinxTransform):
    """Wraps literals of whole names in references, but in headings and in links."""

    default_priority = 700

    def apply(self, **kwargs):
        for literal in list(self.document.findall(nodes.literal)):
            found = NAME.fullmatch(literal.astext())
            inside = (nodes.title, nodes.reference, pending_xref)
            if found and found[1] in orion.__all__ and not isinstance(literal.parent, inside):
                literal.replace_self(self.reference(literal, f"orion.{found[1]}"))

    def reference(self, literal, target):
        """A reference to the page of a name, which shows the literal."""
        link = pending_xref("", literal.deepcopy(), refdomain="py", reftype="obj", reftarget=target)
        link.update_all_atts({"refdoc": self.env.docname, "refexplicit": True, "refwarn": True})
        return link


def setup(app):
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True}
