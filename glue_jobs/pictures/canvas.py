"""An SVG canvas: text, boxes and lines in named colours, each with a light and a dark variant."""

import textwrap
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

WIDTH = 760
MARGIN = 24
LINE = 16  # from line to line
CHARACTER_WIDTH = 6.6  # at 12 px, in the widest of the fonts
# Distinguishable with colour blindness; red is for losses.
COLOURS = ("blue", "orange", "green", "purple", "red", "grey")
STYLE = """
:root { --paper: #ffffff; --ink: #1f2328; --soft: #59636e; --line: #d1d9e0;
  --blue: #0b6bcb; --orange: #c25e00; --green: #2c7a3f; --purple: #7b4fb5; --red: #c0392b; --grey: #8a939c; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #0d1117; --ink: #e6edf3; --soft: #9aa4af; --line: #3a434d;
    --blue: #5aa9f5; --orange: #f0973f; --green: #63c17c; --purple: #b794f4; --red: #ff7b72; --grey: #8b949e; }
}
text { font-family: system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; font-size: 12px;
  fill: var(--ink); }
.head { font-size: 18px; font-weight: 600; } .name { font-size: 13px; font-weight: 600; }
.big { font-size: 22px; font-weight: 600; } .soft { fill: var(--soft); }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.paper { fill: var(--paper); } .line { stroke: var(--line); stroke-width: 1; }
"""
STYLE += " ".join(f".{name} {{ fill: var(--{name}); }}" for name in COLOURS)
STYLE += " " + " ".join(f".stroke-{name} {{ stroke: var(--{name}); stroke-width: 2; }}" for name in COLOURS) + "\n"


@dataclass(slots=True)
class Canvas:
    """An SVG picture, drawn from top to bottom; `y` is the top of the next panel."""

    title: str
    description: str
    y: float = 0
    _body: Element = field(default_factory=lambda: Element("g"))

    def text(self, x: float, y: float, words: str, style: str = "", *, max_width: float | None = None) -> None:
        """Write text; the middle of a text wider than `max_width` is replaced by an ellipsis, with a tooltip."""
        shown = words if max_width is None else shortened(words, int(max_width / CHARACTER_WIDTH))
        self._write(x, y, shown, style, tooltip=words if shown != words else "")

    def lines(self, x: float, y: float, words: str, *, max_width: float, most: int) -> int:
        """Write text in lines of at most `max_width`, as `text` does if `most` do not suffice; return their number."""
        shown, parts = _lines(words, max_width, most)
        for place, part in enumerate(parts):
            self._write(x, y + place * LINE, part, "", tooltip=words if shown != words else "")
        return len(parts)

    def _write(self, x: float, y: float, words: str, style: str, *, tooltip: str) -> None:
        element = SubElement(self._body, "text", {"x": _number(x), "y": _number(y)})
        if style:
            element.set("class", style)
        element.text = words
        if tooltip:
            _add_tooltip(element, tooltip)

    def box(self, x: float, y: float, style: str, *, width: float, height: float, tooltip: str = "") -> None:
        """Draw a filled rectangle."""
        places = {"x": x, "y": y, "width": width, "height": height}
        element = SubElement(self._body, "rect", {name: _number(value) for name, value in places.items()})
        element.set("class", style)
        if tooltip:
            _add_tooltip(element, tooltip)

    def line(self, x: float, y: float, style: str, *, to: tuple[float, float]) -> None:
        """Draw a straight line."""
        places = {"x1": x, "y1": y, "x2": to[0], "y2": to[1]}
        element = SubElement(self._body, "line", {name: _number(value) for name, value in places.items()})
        element.set("class", style)

    def dot(self, x: float, y: float, style: str, *, radius: float, tooltip: str) -> None:
        """Draw a dot."""
        places = {"cx": _number(x), "cy": _number(y), "r": _number(radius)}
        element = SubElement(self._body, "circle", {**places, "class": style})
        _add_tooltip(element, tooltip)

    def svg(self) -> str:
        """Return the picture as an SVG document."""
        height = self.y + MARGIN
        size = {"width": str(WIDTH), "height": _number(height), "viewBox": f"0 0 {WIDTH} {_number(height)}"}
        names = {"role": "img", "aria-labelledby": "title description"}
        root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, **names})
        SubElement(root, "title", {"id": "title"}).text = _printable(self.title)
        SubElement(root, "desc", {"id": "description"}).text = _printable(self.description)
        SubElement(root, "style").text = STYLE
        SubElement(root, "rect", {"class": "paper", "width": str(WIDTH), "height": _number(height)})
        root.append(self._body)
        return ElementTree.tostring(root, encoding="unicode") + "\n"


def lines_of(words: str, max_width: float, *, most: int) -> int:
    """Return the number of lines of `Canvas.lines`."""
    return len(_lines(words, max_width, most)[1])


def _lines(words: str, max_width: float, most: int) -> tuple[str, list[str]]:
    """Return the shown text, and its lines."""
    length = int(max_width / CHARACTER_WIDTH)
    if max(map(len, words.replace("-", " ").split()), default=0) > length:
        length = length * 6 // 7  # a word as long as a line is a hash: its digits need more room than text
    shown = shortened(words, most * length)
    return shown, textwrap.wrap(shown, length) or [""]


def shortened(words: str, length: int) -> str:
    """Return the text with at most `length` characters, the middle replaced by an ellipsis."""
    words = _printable(words)
    if len(words) <= length:
        return words
    head = length // 2
    return f"{words[:head]}…{words[len(words) - (length - 1 - head) :]}"


def _printable(words: str) -> str:
    # XML cannot represent most control characters or lone surrogates.
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in words)


def _add_tooltip(element: Element, words: str) -> None:
    SubElement(element, "title").text = _printable(words)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
