"""SVG that is set into a page: nothing of it reaches beyond its own picture, or beyond the page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_SHAPES = (
    "path",
    "rect",
    "circle",
    "ellipse",
    "line",
    "polyline",
    "polygon",
    "image",
    "text",
    "tspan",
    "use",
)
_AROUND = ("svg", "g", "defs", "clipPath", "pattern", "linearGradient", "radialGradient", "stop")
_DRAWN = frozenset((*_SHAPES, *_AROUND, "title", "desc"))
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_LENGTH = re.compile(r'\b(width|height)="([0-9.]+)pt"')
_BREAKS = re.compile(r"\s*\n\s*")


def inline_svg(svg: str, prefix: str, label: str) -> str:
    """A picture ready to be set into HTML.

    Parameters
    ----------
    svg
        A whole SVG, as text. What does not draw is left out: metadata, style sheets, which would hold for the
        whole page, scripts, handlers of events and addresses elsewhere.
    prefix
        Put before all names within the picture, so that those of two pictures differ.
    label
        What it shows, for those who do not see it.

    Examples
    --------
    >>> inline_svg(
    ...     '<svg xmlns="http://www.w3.org/2000/svg"><g id="a" onclick="b()"/><script/></svg>', "p", "x"
    ... )
    '<svg role="img" aria-label="x"><g id="p-a" /></svg>'
    """
    root = ElementTree.fromstring(svg)
    _keep_drawn(root)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        element.attrib = dict(_attributes(element.attrib, prefix))
    attributes = {name: value for name, value in root.attrib.items() if name not in ("role", "version")}
    root.attrib = {"role": "img", "aria-label": label, **attributes}
    return ElementTree.tostring(root, encoding="unicode")


def _keep_drawn(element: ElementTree.Element) -> None:
    for child in list(element):
        if child.tag.removeprefix(_SVG) not in _DRAWN:
            element.remove(child)
        else:
            _keep_drawn(child)
    # Between elements there is only white space, except in texts.
    if element.tag not in (f"{_SVG}text", f"{_SVG}tspan", f"{_SVG}title", f"{_SVG}desc"):
        element.text = None
        for child in element:
            child.tail = None


def _attributes(found: dict[str, str], prefix: str) -> list[tuple[str, str]]:
    kept: list[tuple[str, str]] = []
    for name, value in found.items():
        if name == "id":
            kept.append(("id", f"{prefix}-{value}"))
        elif name in (_HREF, "href"):
            if value.startswith("#"):
                kept.append(("href", f"#{prefix}-{value[1:]}"))
            elif value.startswith("data:image/png;base64,"):
                kept.append(("href", value))
        elif not (name.startswith(("on", "{")) or _leads_elsewhere(value)):
            kept.append((name, _REFERENCE.sub(rf"url(#{prefix}-\1)", _BREAKS.sub(" ", value))))
    return kept


def _leads_elsewhere(value: str) -> bool:
    return "url(" in _REFERENCE.sub("", value)


def size_of(svg: str) -> tuple[float, float]:
    """Width and height of a picture in pixels, from those in points that its first tag gives.

    Examples
    --------
    >>> size_of('<svg width="300pt" height="225.0pt" viewBox="0 0 300 225"></svg>')
    (400.0, 300.0)
    """
    lengths = dict(_LENGTH.findall(svg[: svg.index(">")]))
    return float(lengths["width"]) * 4.0 / 3.0, float(lengths["height"]) * 4.0 / 3.0
