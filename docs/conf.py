"""The project's site: Markdown by MyST, notebooks by MyST-NB (`notebooks.py`), the reference from the code
(`reference_pages.py`), the pydata theme."""

import sys
from logging import getLogger
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]

import orion  # noqa: E402


def names_a_page(record):
    """Whether a warning is another one than that a list of pages names some that are not written yet."""
    return getattr(record, "subtype", None) != "empty_glob"


getLogger("sphinx.sphinx.directives.other").addFilter(names_a_page)

project = "Orion"
author = copyright = "the Orion authors"
version = release = orion.__version__

extensions = [
    "myst_nb", "sphinx.ext.autodoc", "docstrings", "linked_names", "listed_pages", "notebooks", "reference_pages",
]  # fmt: skip
exclude_patterns = ["_build"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".markdown": "myst-nb"}
myst_enable_extensions = ["colon_fence"]  # the tests run fenced blocks, and so there are no directives among these
myst_heading_anchors = 4

nb_execution_mode = "force"  # each time that a page is read; Sphinx reads those that have changed
nb_execution_in_temp = True  # an empty folder, as for the scripts of the other pages
nb_execution_show_tb = True  # in the warning that a cell failed, which fails the build
nb_execution_timeout = 300  # of one cell, on a machine that does much else
nb_merge_streams = True
nb_output_stderr = "remove"  # that a call compiles is said there, if that takes long; warnings are errors

nitpicky = True
nitpick_ignore_regex = [  # types in signatures: NumPy's, and Orion's inner ones
    ("py:(class|data|exc|meth)", ".*"),
    ("py:obj", r"(?!orion\.).*"),
]
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # `docstrings.py` shows them as they are written
python_maximum_signature_line_length = 88
toc_object_entries = False
smartquotes = False

html_theme = "pydata_sphinx_theme"
html_title = "Orion documentation"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["orion.css"]
html_sidebars = {"index": [], "benchmarks": []}  # pages that have none below them
html_theme_options = {
    "logo": {"text": "Orion"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}
