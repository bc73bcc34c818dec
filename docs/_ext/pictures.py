"""Figures on pages: as SVG in the page itself, so that one serves light, dark and print.

``picture`` is a block of code that is run when the page is built; the figure that it leaves is shown below
it. Blocks of a page share their names. ``:hide:`` shows the figure alone, ``:alt:`` says what is on it for
those who cannot see it, ``:caption:`` which question it answers. The tests run these blocks like others, on
pages that have others.

``scraper`` does the same for the examples of the gallery. The colours of figures in both themes of the site
are those of `wellcal.displays`, in a style sheet that is written when the site is built.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any, ClassVar

import matplotlib as mpl
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

mpl.use("agg")


def figure_html(figure: Any, alt: str, caption: str = "") -> str:
    """A figure of matplotlib as a figure of HTML."""
    from wellcal.displays import to_svg

    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    width, height = figure.get_size_inches()
    kind = "wc-figure wc-wide" if width > 1.2 * height else "wc-figure"
    return (
        f'<figure class="{kind}" role="img" aria-label="{html.escape(alt, quote=True)}">'
        f"{to_svg(figure)}{below}</figure>"
    )


def words_on(figure: Any) -> str:
    """Title and axes of a figure: what is said of it to those who cannot see it."""
    axes = figure.axes[0]
    found = [axes.get_title(loc="left"), axes.get_ylabel(), axes.get_xlabel()]
    return "; ".join(" ".join(text.split()) for text in found if text)


class Picture(SphinxDirective):
    """A block of code, and the figure that it leaves."""

    has_content = True
    option_spec: ClassVar = {
        "alt": directives.unchanged,
        "caption": directives.unchanged,
        "hide": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        import numpy as np
        from matplotlib import pyplot

        import wellcal as wc

        pyplot.close("all")
        names = self.env.temp_data.setdefault("picture names", {"np": np, "wc": wc})
        code = "\n".join(self.content)
        exec(compile(code, f"{self.env.docname}, line {self.lineno}", "exec", dont_inherit=True), names)
        if not pyplot.get_fignums():
            raise self.error("this block leaves no figure")
        figure = pyplot.figure(pyplot.get_fignums()[-1])
        alt = self.options.get("alt") or words_on(figure)
        shown = figure_html(figure, alt, self.options.get("caption", ""))
        pyplot.close("all")
        block = nodes.literal_block(code, code, language="python")
        picture = nodes.raw("", shown, format="html")
        return [picture] if "hide" in self.options else [block, picture]


def scraper(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Figures of a block of an example: a file for the gallery's thumbnails, and SVG for the page."""
    from matplotlib import pyplot

    found: list[str] = []
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        path = next(block_vars["image_path_iterator"])
        figure.savefig(path, format="png", dpi=150, bbox_inches="tight")
        lines = figure_html(figure, words_on(figure)).splitlines()
        found += [".. raw:: html", "", *(f"    {line}" for line in lines), ""]
    pyplot.close("all")
    return "\n".join(found)


STYLE = "figures.css"


def write_colours(app: Any) -> None:
    """What the colours of figures are on light and on dark pages."""
    from wellcal.displays._style import css_variables

    def declared(theme: str) -> str:
        colours = (f"--wc-{name}: {colour};" for name, colour in css_variables(theme).items())
        return f'html[data-theme="{theme}"] {{ {" ".join(colours)} }}\n'

    folder = Path(app.outdir, "_static")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / STYLE).write_text(declared("light") + declared("dark"), encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("picture", Picture)
    app.add_css_file(STYLE)
    app.connect("builder-inited", write_colours)
    return {"version": "1", "parallel_read_safe": True}
