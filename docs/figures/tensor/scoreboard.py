"""A drawing of the scoreboard: what the final kernel chooses for forty shapes."""

from __future__ import annotations

import math
from html import escape

from cudatut.site.svg import Svg, figure, tr

SMS = 132  # of an H100
COLORS = {64: "c4", 128: "c3", 192: "c5", 256: "c2"}


def choices() -> str:
    """Forty shapes by the number of their results and their depth: a circle where tiles are computed whole, a square where
    blocks share some of them, a color for the columns of the tile."""
    from cudatut.book.gemm.shapes.shapes import SHAPES
    from cudatut.book.tensor.gemm import gemm

    left, right, top, bottom = 52, 700, 36, 330
    low, high = 64 * 64, 8192 * 8192

    def px(results: float) -> float:
        return left + (right - left) * math.log(results / low) / math.log(high / low)

    def py(depth: float) -> float:
        return bottom + (top - bottom) * math.log(depth / 64) / math.log(8192 / 64)

    s = Svg(712, 376)
    for power in range(4, 8):
        x = px(10.0**power)
        s.line(x, top, x, bottom, "grid")
        s.text(x, bottom + 18, f"{10**power:,}", "muted", size=12)
    for power in range(6, 14):
        y = py(2.0**power)
        s.line(left, y, right, y, "grid").text(left - 6, y + 4, 2**power, "muted", "end", 12)
    s.text((left + right) / 2, bottom + 38, tr("results, m × n", "结果数，m × n"), "muted", size=12)
    s.text(4, 14, tr("depth k", "深度 k"), "muted", "start", 12)
    found = {}
    for m, n, k in SHAPES:
        unaligned = 2 * (m * k * (k % 8 > 0) + k * n * (n % 8 > 0))
        plan = found[m, n, k] = gemm.choose(m, n, k, SMS, unaligned)
        color = f"{COLORS[plan.tile.columns]} solid"
        told = f"{m} × {n} × {k}: {tr('columns', '列')} {plan.tile.columns}"
        s.raw(f"<g><title>{escape(told, quote=False)}</title>")
        if plan.share:
            s.rect(px(m * n) - 4, py(k) - 4, 8, 8, color, rx=0)
        else:
            s.circle(px(m * n), py(k), 4.5, color)
        s.raw("</g>")
    used = sorted({plan.tile.columns for plan in found.values()})
    at = right - 96 * len(used)
    for columns in used:
        s.circle(at, 10, 4.5, f"{COLORS[columns]} solid")
        s.text(at + 10, 14, tr(f"{columns} columns", f"{columns} 列"), "", "start", 12)
        at += 96
    shares = sum(plan.share > 0 for plan in found.values())
    alt = tr(
        f"Forty shapes by results and depth. {shares} of them share tiles among blocks, at least one with each of "
        f"{', '.join(map(str, used))} columns in a tile.",
        f"四十种形状，按结果数和深度放置。其中 {shares} 种由几个线程块分担分块；分块的列数有 {'、'.join(map(str, used))}。",
    )
    caption = tr(
        "What the final kernel chooses on an H100. Circles: whole tiles only. Squares: blocks share the depth of some tiles. "
        "The color is the number of columns of a tile; the pointer tells the shape.",
        "最终的 kernel 在 H100 上的选择。圆点：只有整个分块；方块：几个线程块分担一些分块的深度。颜色表示分块的列数，鼠标停留可看形状。",
    )
    return figure(s, alt=alt, caption=caption)
