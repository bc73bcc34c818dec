"""Settings of the documentation."""

import importlib.metadata

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
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

# -- pages -------------------------------------------------------------------------------------------

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# Examples in docstrings run with the tests, in the names of their module; here only those of the pages do.
doctest_test_doctest_blocks = ""
doctest_global_setup = """
import numpy as np
import wellcal as wc
"""

# -- reference ---------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"  # arrays are Any: shapes are in the text, where they say something
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # `domain=real`, not all that it consists of
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# -- look --------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = "wellcal"
html_static_path = ["_static"]
html_css_files = ["wellcal.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5c8a", "color-brand-content": "#0b5c8a"},
    "dark_css_variables": {"color-brand-primary": "#7cc4ee", "color-brand-content": "#7cc4ee"},
}
