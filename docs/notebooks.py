"""The tutorials are notebooks in Markdown, which MyST-NB executes while it reads them.

Here is what Orion adds: the kernels have settings of their own, a change of Orion's code executes all notebooks again,
each page offers its notebook with outputs, and the build ends with what it executed.
"""

import os
import re
import time
from hashlib import sha256
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.addnodes import download_reference
from sphinx.transforms import SphinxTransform

import orion

PACKAGE = Path(orion.__file__).resolve().parent
BLOCK = re.compile(r"(?<!-->\n)^```python$", re.MULTILINE)  # without those that a comment says are not run
SETTINGS = """
c.IPKernelApp.log_level = "ERROR"  # not that others on this machine could listen
c.InteractiveShell.colors = "nocolor"  # tracebacks are read in a log
"""


def setup(app):
    app.add_config_value("code_of_orion", digest_of_code(), "env")  # where it is another one, all pages are read again
    app.connect("config-inited", set_up_kernels)
    app.connect("builder-inited", start_clock)
    app.connect("build-finished", say_what_was_executed)
    app.add_transform(OfferNotebook)
    return {"parallel_read_safe": True}


def digest_of_code():
    """A digest of the files of the package."""
    found = sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        found.update(f"{path.relative_to(PACKAGE)}\n".encode() + path.read_bytes())
    return found.hexdigest()


def set_up_kernels(app, config):
    """Give kernels a profile beside the pages, not that of the user. Have what cells are warned of be errors, and plans
    be as wide in any terminal."""
    folder = Path(app.outdir).parent / "ipython"
    settings = folder / "profile_default" / "ipython_kernel_config.py"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(SETTINGS, encoding="utf-8")
    os.environ |= {"IPYTHONDIR": str(folder), "PYTHONWARNINGS": "error:::__main__", "COLUMNS": "92"}


class OfferNotebook(SphinxTransform):
    """Adds a link to the executed notebook below the title of a page that is one."""

    default_priority = 500

    def apply(self, **kwargs):
        title = next(iter(self.document.findall(nodes.title)), None)
        if title is None or NbMetadataCollector.get_exec_data(self.env, self.env.docname) is None:
            return
        file = Path(self.env.mystnb_config.output_folder, f"{self.env.docname}.ipynb")
        target = "/" + os.path.relpath(file, self.env.srcdir)
        link = download_reference("", "", nodes.literal("", file.name), reftarget=target)
        offer = nodes.paragraph("", "", nodes.Text("This page is a notebook: "), link)
        title.parent.insert(title.parent.index(title) + 1, offer)


def start_clock(app):
    app.began = time.time()


def say_what_was_executed(app, error):
    """Print how many pages and blocks there are, and how many notebooks this build has executed."""
    if error is not None or app.builder.name != "html":
        return
    names = app.env.found_docs
    notebooks = list(filter(None, (NbMetadataCollector.get_exec_data(app.env, name) for name in names)))
    executed = [data["runtime"] for data in notebooks if data["succeeded"] and data["mtime"] >= app.began]
    texts = (Path(app.env.doc2path(name)).read_text(encoding="utf-8") for name in names)
    print(
        f"{len(names)} pages in {time.time() - app.began:.0f} s; "
        f"{len(executed)} of {len(notebooks)} notebooks executed, in {sum(executed):.0f} s; "
        f"{sum(len(BLOCK.findall(text)) for text in texts)} blocks of Python, which `make docs-examples` executes"
    )
