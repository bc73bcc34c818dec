"""Templates filled in: each page is one file, asks nobody for anything and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from wellcal import __version__
from wellcal._arrays.characters import writable
from wellcal.displays._style import css_variables, to_svg
from wellcal.reporting.inline import inline_svg, size_of
from wellcal.reporting.pictures import ReportFigure
from wellcal.reporting.view import Picture

_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|recalibrate=True)")
_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; "
    "base-uri 'none'; form-action 'none'"
)


@cache
def templates() -> Any:
    """Templates of the package; everything that is set into them is escaped."""
    try:
        import jinja2
    except ImportError:
        raise ImportError("pages need jinja2: pip install 'wellcal[report]'") from None
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("wellcal.reporting"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["with_code"] = with_code
    return found


def with_code(text: str) -> Any:
    """A text, escaped, in which options of commands and of functions are code, so that no line breaks them.

    Examples
    --------
    >>> with_code("a<b: recalibrate=True, or --recalibrate.")
    Markup('a&lt;b: <code>recalibrate=True</code>, or <code>--recalibrate</code>.')
    """
    from markupsafe import Markup, escape

    parts = _OPTION.split(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
    )


def render(template: str, values: Mapping[str, Any]) -> str:
    """A page from one of our templates, with style, script and the policy that lets only these two through.

    Parameters
    ----------
    template
        Its name, such as "result.html".
    values
        What is set into it. Texts are escaped.

    Examples
    --------
    >>> empty = dict.fromkeys(("points", "rows", "tables", "pictures"), ())
    >>> page = render("result.html", {"title": "<b>", "kind": "", "headline": "", "beside": None, **empty})
    >>> "<title>&lt;b&gt;</title>" in page, "script-src &#39;sha256-" in page
    (True, True)
    """
    environment = templates()
    script = environment.loader.get_source(environment, "page.js")[0]
    style = environment.get_template("page.css").render(picture_colours=_raw(_picture_colours()))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page: str = environment.get_template(template).render(
        style=_raw(style),
        script=_raw(script),
        policy=_POLICY.format(hash=digest),
        version=__version__,
        **values,
    )
    return writable(page)


def picture_in(figure: ReportFigure, anchor: str) -> Picture:
    """A picture for a page, under the question that it answers: its title would say the verdict once more.

    Parameters
    ----------
    figure
        The picture.
    anchor
        Where links lead to it: unique in its page.
    """
    svg, label = to_svg(figure.figure, title=False), f"{figure.title}: {figure.question}"
    width, height = size_of(svg)
    ratio = round(width / height, 3)
    safe = _raw(inline_svg(svg, anchor, label))
    return Picture(anchor, safe, figure.question, figure.title, round(width), ratio)


def _raw(text: str) -> Any:
    """Text of our own that is HTML already."""
    from markupsafe import Markup

    return Markup(text)


def _picture_colours() -> str:
    """Colours of pictures in light, dark and print, as variables of CSS."""

    def declared(theme: str) -> str:
        return ":root { " + " ".join(f"--wc-{name}: {c};" for name, c in css_variables(theme).items()) + " }"

    dark = f"@media screen and (prefers-color-scheme: dark) {{ {declared('dark')} }}"
    return f"{declared('light')}\n{dark}"
