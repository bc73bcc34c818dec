"""The reference shows what users call.

What a class is built with stands on the page of its base class, for those who write one of their own, and how
results are stored and read is nobody's concern. Values that are functions, which Python shows by their
addresses or as ``<lambda>``, are left out.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

OF_FAMILIES = frozenset(
    [
        "added_fields",
        "align",
        "argument",
        "arrange",
        "array_fields",
        "batch_fields",
        "check_parameters",
        "column_role",
        "constant",
        "draw",
        "like",
        "map_arrays",
        "ops",
        "ordered_like",
        "parameter_fields",
        "require",
        "store",
        "target_domain",
        "with_fields",
        "with_index",
        "xp",
    ]
)
"""Members of `wellcal.Predictions` that serve those who write a family."""

OF_RESULTS = frozenset(
    [
        "added",
        "called",
        "check_stored",
        "checks",
        "deviations",
        "in_words",
        "read",
        "with_cases",
        "with_given",
    ]
)
"""Members by which results are made, stored and put into words."""

FUNCTION = re.compile(r"<(?:bound method|function|built-in function) .*?>(?=[,)\s}]|$)")


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Whether a member is left out; None leaves it to others."""
    page = app.env.docname.rpartition("/")[2]
    if what == "class" and (name in OF_RESULTS or (name in OF_FAMILIES and page != "wellcal.Predictions")):
        return True
    return None


def without_functions(app: Any, doctree: nodes.document) -> None:
    """Default values and attributes that hold functions say nothing: an ellipsis, and no value at all."""
    for node in list(doctree.findall(addnodes.desc_annotation)):
        if node.astext().lstrip().startswith("=") and FUNCTION.search(node.astext()):
            node.parent.remove(node)
    for node in doctree.findall(addnodes.desc_parameter):
        if FUNCTION.search(node.astext()):
            name = node.astext().partition("=")[0]
            node.children = []
            node += [
                addnodes.desc_sig_name("", name),
                addnodes.desc_sig_operator("", "="),
                nodes.inline("", "..."),
            ]


def setup(app: Any) -> dict[str, Any]:
    app.connect("autodoc-skip-member", skip)
    app.connect("doctree-read", without_functions)
    return {"version": "1", "parallel_read_safe": True}
