"""Settings of the documentation."""

import importlib.metadata
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
# Examples are small: threads of linear algebra would cost more than they gain.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

project = "wellcal"
author = "The wellcal developers"
copyright = "2026, the wellcal developers"
release = version = importlib.metadata.version("wellcal")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "pictures",
    "reference",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5", "sg_execution_times.rst"]
templates_path = ["_templates"]

# -- pages -------------------------------------------------------------------------------------------

myst_enable_extensions = ["amsmath", "attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
copybutton_exclude = ".linenos, .gp, .go"

# Examples in docstrings run with the tests, in the names of their module; here only those of the pages do.
doctest_test_doctest_blocks = ""
doctest_global_setup = """
import numpy as np
import wellcal as wc
"""

# -- gallery -----------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "image_scrapers": ("pictures.scraper",),
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r"Display",
    "doc_module": ("wellcal",),
    "backreferences_dir": "api/generated/backreferences",
    "reference_url": {"wellcal": None},
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
    "thumbnail_size": (480, 360),
}

# -- reference ---------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"  # arrays are Any: shapes are in the text, where they say something
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # `domain=real`, not all that it consists of
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# -- links -------------------------------------------------------------------------------------------

nitpicky = True  # a reference to what is not there is a warning, and so an error
linkcheck_timeout = 15
linkcheck_retries = 2
linkcheck_anchors = False

# -- look --------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_title = "wellcal"
html_static_path = ["_static"]
html_css_files = ["wellcal.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_sidebars = {"index": [], "gallery/*": []}
html_theme_options = {
    "logo": {"text": "wellcal"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
