"""A drawing of the scoreboard: what the final kernel chooses for forty shapes."""

import json
from pathlib import Path

from cudatut.site.drawing import Axes, Svg, decades, figure, log, powers_of_two, tr

COLORS = {64: "c4", 128: "c3", 192: "c5", 256: "c2"}


def choices() -> str:
    """Forty shapes by the number of their results and their depth: a circle where tiles are computed whole, a square where
    blocks share some of them, a color for the columns of the tile.

    scoreboard.json beside this file has what the kernel's launcher chooses; a test compares both.
    """
    text = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
    chosen = [
        tuple(one) for one in json.loads(text)["H100"]
    ]  # m, n, k, columns, whether some are shared
    s = Svg(712, 376)
    x, y = (64 * 64, 8192 * 8192), (64, 8192)
    field = Axes(s, log(*x), log(*y), 52, 700, 36, 330)
    field.x_ticks(decades(*x), ",.0f").y_ticks(powers_of_two(*y))
    field.names(tr("results, m × n", "结果数，m × n"), tr("depth k", "深度 k"))
    for m, n, k, columns, shares in chosen:
        tip = f"{m} × {n} × {k}: {tr('columns', '列')} {columns}"
        draw, half = (field.square, 4) if shares else (field.dot, 4.5)
        draw(m * n, k, f"{COLORS[columns]} solid", half, tip)
    used = sorted({columns for *_, columns, _ in chosen})
    for place, columns in enumerate(reversed(used), 1):
        at = field.right - 96 * place
        s.circle(at, 10, 4.5, f"{COLORS[columns]} solid")
        s.text_from(at + 10, 14, tr(f"{columns} columns", f"{columns} 列"), "", 12)
    shares = sum(shared for *_, shared in chosen)
    alt = tr(
        f"Forty shapes by results and depth. {shares} of them share tiles among blocks, at least one with each of "
        f"{', '.join(map(str, used))} columns in a tile.",
        f"四十种形状，按结果数和深度画在图中。其中 {shares} 种由几个线程块分担分块；分块的列数有 {'、'.join(map(str, used))}。",
    )
    caption = tr(
        "What the final kernel chooses on an H100 or H200. Circles: whole tiles only. Squares: blocks share the depth of "
        "some tiles. The color is the number of columns of a tile; the pointer tells the shape.",
        "最终的 kernel 在 H100 或 H200 上的选择。圆点：每个分块由一个线程块算完；方块：有些分块沿深度分给几个线程块来算。颜色表示分块的列数，鼠标停留可看形状。",
    )
    return figure(s, alt=alt, caption=caption)
