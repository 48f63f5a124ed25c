"""Figures drawn by code: a small SVG builder whose colors come from the site's style sheet.

    from cudatut.site.svg import Svg, figure, tr

    def blocks(n=8, block=4):
        s = Svg(640, 120)
        for i in range(n):
            s.rect(20 + 75 * i, 40, 70, 40, cls=f"c{1 + i // block}", text=i)
        return figure(s, alt=tr("Eight threads in two blocks.", "两个线程块，共八个线程。"))

Classes: `c0` (neutral) and `c1`..`c6` are tints with an outline of the same hue, and the strong hue
itself on lines and text; `muted`, `accent`, `warn`, `good` for emphasis; `axis` for thin rules;
`dash` breaks a line; `solid` fills a shape with the strong hue (its text turns to the page color);
`hollow` leaves a shape unfilled; `bold` and `mono` set the type of a text. Several may be combined.
Every class is legible on the light and on the dark page; never write a color into a figure.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from cudatut.site import locale

SIZE = 14
LEAST = 10  # pixels: no word of a drawing is smaller, however narrow the screen; then the drawing scrolls


@dataclass(frozen=True)
class Layout:
    """What a chart is drawn for. The style sheet shows the drawings of class `cls` on such screens only."""

    width: float
    cls: str


WIDE, NARROW = Layout(700, "ct-wide"), Layout(332, "ct-narrow")
_HEAD = 9  # length of an arrow head, in viewBox units
_FONT_SIZE = re.compile(r'font-size="([0-9.]+)"')
# Widths of narrow and of wide characters, in em.
_EM = dict.fromkeys("iljtfI.,:;|!'()[] ", 0.34) | dict.fromkeys("mwMW%@—", 0.88)


def tr(en: str, zh: str) -> str:
    """Return `en` or `zh`, whichever is the language of the page being built."""
    return zh if locale.current() == "zh" else en


def text_width(value: object, size: float = SIZE) -> float:
    """Return an estimate of the width of one line of text in viewBox units (CJK: one em each)."""
    wide = unicodedata.east_asian_width
    return size * sum(1 if wide(char) in "WF" else _EM.get(char, 0.58) for char in str(value))


class Svg:
    """A drawing of `width` x `height` viewBox units (one unit is one CSS pixel at full size).

    Keep the width at 720 or less: that is the text column. All coordinates are in viewBox units,
    y grows downwards. Every method returns the drawing, so calls can be chained.
    """

    def __init__(self, width: float, height: float):
        if width <= 0 or height <= 0:
            raise ValueError(f"a drawing needs a positive size, got {width} x {height}")
        self.width, self.height = width, height
        self._parts: list[str] = []

    def rect(self, x, y, w, h, cls="c1", text=None, rx=4, size=SIZE) -> Svg:
        """Draw a box with its top left corner at (x, y); `text` is centered in it (lines by \\n)."""
        if w < 0 or h < 0:
            raise ValueError(f"a box cannot be {w} x {h}")
        attrs = {"x": x, "y": y, "width": w, "height": h, "rx": rx or None, "class": cls}
        self._add("rect", attrs)
        return self._inside(x + w / 2, y + h / 2, text, cls, size)

    def circle(self, x, y, r, cls="c1", text=None, size=SIZE) -> Svg:
        """Draw a circle of radius `r` around (x, y); `text` is centered in it."""
        self._add("circle", {"cx": x, "cy": y, "r": r, "class": cls})
        return self._inside(x, y, text, cls, size)

    def text(self, x, y, value, cls="", anchor="middle", size=SIZE) -> Svg:
        """Write `value` with its baseline at y; anchor "start", "middle" or "end". Lines by \\n."""
        if anchor not in ("start", "middle", "end"):
            raise ValueError(f"anchor is 'start', 'middle' or 'end', not {anchor!r}")
        for i, line in enumerate(str(value).split("\n")):
            attrs = {
                "x": x,
                "y": y + i * 1.3 * size,
                "class": cls,
                "text-anchor": None if anchor == "middle" else anchor,
                "font-size": None if size == SIZE else size,
            }
            self._add("text", attrs, escape(line, quote=False))
        return self

    def text_from(self, x, y, value, cls="", size=SIZE) -> Svg:
        """Write `value` from x on to the right, with its baseline at y."""
        return self.text(x, y, value, cls, "start", size)

    def text_to(self, x, y, value, cls="", size=SIZE) -> Svg:
        """Write `value` so that it ends at x, with its baseline at y."""
        return self.text(x, y, value, cls, "end", size)

    def line(self, x1, y1, x2, y2, cls="") -> Svg:
        """Draw a straight line."""
        return self._add("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": cls})

    def arrow(self, x1, y1, x2, y2, cls="", text=None, size=SIZE) -> Svg:
        """Draw a line with a head at (x2, y2); `text` stands above its middle.

        The head is a shape of its own and not a marker: markers need ids, which would clash
        between the figures of a page.
        """
        length = math.hypot(x2 - x1, y2 - y1)
        if length == 0:
            raise ValueError(f"an arrow from ({x1}, {y1}) to itself has no direction")
        ux, uy = (x2 - x1) / length, (y2 - y1) / length
        bx, by = x2 - ux * _HEAD, y2 - uy * _HEAD
        half = _HEAD * 0.45
        self.line(x1, y1, bx, by, cls)
        head = [(x2, y2), (bx - uy * half, by + ux * half), (bx + uy * half, by - ux * half)]
        head_cls = " ".join(["head", *(c for c in cls.split() if c != "dash")])
        self._add("polygon", {"points": _points(head), "class": head_cls})
        if text is not None:
            # Above a level arrow, to the right of an upright one: never across its own line.
            if abs(ux) >= abs(uy):
                lines = str(text).count("\n")
                y = (y1 + y2) / 2 - 7 - lines * 1.3 * size
                self.text((x1 + x2) / 2, y, text, cls, size=size)
            else:
                self.text((x1 + x2) / 2 + 8, (y1 + y2) / 2 + 5, text, cls, "start", size)
        return self

    def polyline(self, points: Iterable[tuple[float, float]], cls="") -> Svg:
        """Draw straight lines through `points`, a sequence of (x, y)."""
        return self._add("polyline", {"points": _points(points), "class": cls})

    def polygon(self, points: Iterable[tuple[float, float]], cls="c1") -> Svg:
        """Draw the closed shape through `points`, a sequence of (x, y)."""
        return self._add("polygon", {"points": _points(points), "class": cls})

    def raw(self, markup: str) -> Svg:
        """Append SVG markup as it is; the caller has escaped it."""
        self._parts.append(markup)
        return self

    def render(self, title: str, desc: str | None = None, cls: str = "") -> str:
        """Return the `<svg>` element with role img; its label is the title and, where given, the description.

        No `<title>` or `<desc>`: the label has what they would say, and every number weighs.
        """
        inside = "".join(self._parts)
        smallest = min([SIZE, *map(float, _FONT_SIZE.findall(inside))])
        attrs = {
            "class": f"ct-svg {cls}".strip(),
            "viewBox": f"0 0 {coordinate(self.width)} {coordinate(self.height)}",
            "width": self.width,
            "height": self.height,
            # On a narrow screen it shrinks this far and then scrolls, so that words stay legible.
            "style": f"min-width:{math.ceil(LEAST / smallest * self.width)}px",
            "role": "img",
            "aria-label": title if desc is None else f"{title} {desc}",
            "text-anchor": "middle",
            "font-size": SIZE,
        }
        return f"<svg{_attrs(attrs)}>{inside}</svg>"

    def _add(self, tag, attrs, inner=None) -> Svg:
        body = "/>" if inner is None else f">{inner}</{tag}>"
        self._parts.append(f"<{tag}{_attrs(attrs)}{body}")
        return self

    def _inside(self, x, y, text, cls, size) -> Svg:
        if text is None:
            return self
        lines = str(text).count("\n")
        kept = [c for c in cls.split() if c in ("muted", "mono", "bold")]
        if "solid" in cls.split():
            kept.append("on")
        return self.text(x, y + 0.35 * size - lines * 0.65 * size, text, " ".join(kept), size=size)


def figure(svg: Svg, *, alt: str, caption: str | None = None) -> str:
    """Return the drawing as a `<figure>`: one line of HTML, with `alt` as its text alternative.

    `alt` says what the figure shows to someone who does not see it; `caption` is printed below it
    (text between backticks becomes code). The drawing scrolls sideways inside its frame where the
    screen is narrower than it is; the page never does. Raises ValueError where `alt` is empty.
    """
    if not alt.strip():
        raise ValueError("a figure needs a text alternative: figure(svg, alt=...)")
    below = "" if caption is None else f"<figcaption>{_inline(caption)}</figcaption>"
    drawn = svg.render(" ".join(alt.split()))
    return f'<figure class="ct-figure"><div class="ct-scroll" tabindex="0">{drawn}</div>{below}</figure>'


def _inline(text: str) -> str:
    """Escape a line of text, turning `code` between backticks into `<code>`."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(" ".join(text.split()), quote=False))


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in points)


def coordinate(value: float) -> str:
    """Write a coordinate with at most one decimal: a page of figures has thousands of them."""
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"a coordinate of a figure is {value}")
    shown = f"{value:.1f}".removesuffix(".0")
    return "0" if shown == "-0" else shown


def _attrs(attrs: dict[str, object]) -> str:
    shown = {
        name: coordinate(value) if isinstance(value, int | float) else escape(str(value))
        for name, value in attrs.items()
        if value not in (None, "")
    }
    return "".join(f' {name}="{value}"' for name, value in shown.items())
