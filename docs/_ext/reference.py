"""The reference shows what users call.

What a class is built with stands on the page of its base class, for those who write one of their own, and how
results are stored and read is nobody's concern. Default values that are functions, which Python shows by
their addresses or as ``<lambda>``, are left out; constants are shown as the numbers and texts that they are.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from sphinx import addnodes

OF_FAMILIES = frozenset(
    [
        "align",
        "argument",
        "arrange",
        "array_fields",
        "arrays",
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
        "parts",
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

FUNCTION = re.compile(
    r"<(?:bound method|function|built-in function) .*?>(?=[,)\s}]|$)|functools\.partial\([^()]*\)|<factory>"
)
CONSTANT = re.compile(r"(?<==)_?[A-Z][A-Z_]*(?=[,)])")


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Whether a member is left out; None leaves it to others."""
    page = app.env.docname.rpartition("/")[2]
    if what == "class" and (name in OF_RESULTS or (name in OF_FAMILIES and page != "wellcal.Predictions")):
        return True
    return None


def readable(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """A signature with an ellipsis for functions and the values of constants; None leaves it to others."""
    if not signature:
        return None
    module = inspect.getmodule(obj)
    names = vars(module) if module else {}

    def value(found: re.Match[str]) -> str:
        constant = names.get(found[0])
        return repr(constant) if isinstance(constant, (int, float, str, tuple)) else found[0]

    shown = CONSTANT.sub(value, FUNCTION.sub("...", signature))
    return None if shown == signature else (shown, returned)


def without_functions(app: Any, doctree: nodes.document) -> None:
    """Attributes that hold functions have no value that says something."""
    for node in list(doctree.findall(addnodes.desc_annotation)):
        if node.astext().lstrip().startswith("=") and FUNCTION.search(node.astext()):
            node.parent.remove(node)


def setup(app: Any) -> dict[str, Any]:
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-signature", readable)
    app.connect("doctree-read", without_functions)
    return {"version": "1", "parallel_read_safe": True}
