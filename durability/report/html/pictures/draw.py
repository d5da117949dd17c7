"""Draws charts as SVG elements for a page, all of them in one call of the converter."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup, escape

from durability.plain import plain
from durability.report.html.pictures.style import CONFIG
from durability.report.words import clipped, visible

if TYPE_CHECKING:
    import altair as alt

PROGRAM = Path(__file__).with_name("convert.py")
SECONDS = 120
"""How long all charts of a page may take. They take two or three seconds on a busy machine."""
SVG = "{http://www.w3.org/2000/svg}"
TAGS = frozenset(("svg", "g", "path", "line", "rect", "text", "tspan"))
"""What a chart may consist of. Links, scripts, styles, images and foreign elements aren't among them."""
ATTRIBUTES = frozenset(
    (
        *("viewBox", "d", "x", "y", "x2", "y2", "width", "height", "transform"),
        *("fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity"),
        *("text-anchor", "font-weight"),
    )
)
"""The attributes that a page keeps. Its CSS sets fonts, and `style` is forbidden by its Content-Security-Policy."""
DEFAULTS = {("opacity", "1"), ("stroke-width", "1"), ("stroke-miterlimit", "10"), ("transform", "translate(0,0)")}


class Picture(NamedTuple):
    """A chart with its text alternative. title: what it is of. text: what it shows, and where the numbers are."""

    chart: alt.LayerChart | alt.FacetChart
    title: str
    text: str


def draw(pictures: Mapping[str, Picture]) -> dict[str, Markup]:
    """An SVG element for each picture, or a paragraph that says why there is none.

    pictures: by name. A name becomes part of ids, so it is unique on its page.
    """
    if not pictures:
        return {}
    charts = {name: _visible(picture.chart.to_dict(validate=False)) for name, picture in pictures.items()}
    asked = json.dumps({name: {**chart, "config": CONFIG} for name, chart in charts.items()})
    try:
        # -P: the program's folder isn't searched for modules.
        run = subprocess.run(
            (sys.executable, "-P", str(PROGRAM)), input=asked, capture_output=True, timeout=SECONDS, text=True
        )
        answers = json.loads(run.stdout) if run.returncode == 0 else _failed(pictures, _last_line(run.stderr, run))
    except subprocess.TimeoutExpired:
        answers = _failed(pictures, f"the converter took longer than {SECONDS} s")
    except (OSError, ValueError) as error:  # it can't be started, or its answer isn't JSON
        answers = _failed(pictures, f"the converter failed: {error}")
    return {name: _element(name, picture, answers[name]) for name, picture in pictures.items()}


def _visible(value: Any) -> Any:
    """A chart in which all text is `visible`. Control characters, which names and reasons may have, are forbidden in XML."""
    if isinstance(value, dict):
        return {key: _visible(member) for key, member in value.items()}
    return [_visible(member) for member in value] if isinstance(value, list) else visible(value)


def _failed(pictures: Mapping[str, Picture], why: str) -> dict[str, dict[str, str]]:
    return {name: {"error": why} for name in pictures}


def _last_line(text: str, run: subprocess.CompletedProcess[str]) -> str:
    """The last line of a traceback, else the exit status."""
    lines = text.strip().splitlines()
    return lines[-1] if lines else f"the converter ended with status {run.returncode}"


def _element(name: str, picture: Picture, answer: Mapping[str, str]) -> Markup:
    why = answer.get("error")
    if why is None:
        try:
            return Markup(inlined(answer["svg"], name, picture))
        except (ElementTree.ParseError, ValueError) as error:
            why = str(error)
    why = escape(clipped(plain(why), 300))
    return Markup('<p class="empty">The picture could not be drawn: {}. The numbers are below.</p>').format(why)


def inlined(svg: str, name: str, picture: Picture) -> str:
    """A document of Vega as an element of a page, with its text alternative.

    A description of a mark becomes its title, which browsers show under the pointer. Invisible elements and attributes without
    effect are left out: they are two thirds of the text. Raises ValueError for an element that isn't in TAGS, and ParseError
    for text that isn't XML.

    >>> about = Picture(None, "<Loss>", "1 broker")
    >>> path = '<path aria-label="a &lt; b" onclick="c()" d="M0.12345,1"/>'
    >>> print(inlined(f'<svg xmlns="http://www.w3.org/2000/svg">{path}</svg>', "x", about).replace("><", ">\\n<"))
    <svg class="picture" role="img" aria-labelledby="x-title x-text">
    <title id="x-title">&lt;Loss&gt;</title>
    <desc id="x-text">1 broker</desc>
    <path d="M0.12,1">
    <title>a &lt; b</title>
    </path>
    </svg>
    >>> inlined('<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>', "x", about)
    Traceback (most recent call last):
    ValueError: a chart has the element script
    """
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in [child for child in parent if _is_invisible(child)]:
            parent.remove(child)
    for element in list(root.iter()):
        element.tag = element.tag.removeprefix(SVG)
        if element.tag not in TAGS:
            raise ValueError(f"a chart has the element {element.tag}")
        label = element.get("aria-label")
        kept = {
            key: value for key, value in element.attrib.items() if key in ATTRIBUTES and (key, value) not in DEFAULTS
        }
        element.attrib = {key: _rounded(key, value) for key, value in kept.items()}
        if label:
            ElementTree.SubElement(element, "title").text = label
    root.attrib |= {"class": "picture", "role": "img", "aria-labelledby": f"{name}-title {name}-text"}
    for place, (tag, part, text) in enumerate((("title", "title", picture.title), ("desc", "text", picture.text))):
        child = ElementTree.Element(tag, {"id": f"{name}-{part}"})
        child.text = str(visible(text))
        root.insert(place, child)
    return ElementTree.tostring(root, encoding="unicode")


def _is_invisible(element: Any) -> bool:
    """Vega's groups have a foreground and a background, mostly empty."""
    if element.get("display") == "none":
        return True
    return element.get("class") == "background" and not {"fill", "stroke"} & set(element.keys())


def _rounded(key: str, value: str) -> str:
    """Lengths to a hundredth of a pixel."""
    if key not in ("d", "transform", "x", "y", "x2", "y2", "width", "height"):
        return value
    return re.sub(r"-?\d+\.\d{3,}(?:e-\d+)?", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), value)
