"""Drawings of wgmma: which warp has which rows, and how the two kinds of lines lie in boxes."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr


def rows_of_warps(columns: int = 128) -> str:
    """The sums of a warpgroup, 64 rows: 16 for each warp, and what one lane holds of eight columns."""
    left, top, band, wide = 96, 34, 44, 250
    s = Svg(left + wide + 330, top + 4 * band + 20)
    s.text(left, 20, tr(f"64 x {columns} sums", f"64 × {columns} 个累加值"), "bold", "start")
    for w in range(4):
        s.text(8, top + w * band + 26, tr(f"warp {w}", f"线程束 {w}"), "", "start")
        label = tr(f"rows {16 * w} to {16 * w + 15}", f"第 {16 * w} 到 {16 * w + 15} 行")
        s.rect(left, top + w * band, wide, band - 4, f"c{w}", label, rx=3)
    x, cell = left + wide + 70, 28
    s.text(x, 20, tr("8 columns of warp 0", "线程束 0 的 8 列"), "bold", "start")
    for r in range(4):
        for c in range(8):
            lane = r * 4 + c // 2
            cls = "c1" if lane == 5 else "hollow"
            s.rect(x + c * cell, top + r * cell, cell - 3, cell - 3, cls, lane, rx=2)
    s.text(x, top + 4 * cell + 20, tr("row g: lanes 4g to 4g + 3;", "第 g 行：lane 4g 到 4g + 3；"), "muted", "start")  # fmt: skip
    s.text(x, top + 4 * cell + 40, tr("row g + 8: the same lanes", "第 g + 8 行：同样这些 lane"), "muted", "start")  # fmt: skip
    alt = tr(
        f"The 64 x {columns} sums of a warpgroup are four bands of 16 rows, one for each warp. In a row of eight columns four lanes "
        "hold two numbers each.",
        f"线程束组的 64 × {columns} 个累加值分成四条，每条 16 行，归一个线程束。每行的八列由四个 lane 各持有两个数。",
    )
    caption = tr(
        f"Each warp has 16 of the 64 rows, over all {columns} columns. Of eight columns a lane has two in row g and two in row g + 8, "
        f"as with `mma.sync`: {columns // 2} numbers altogether.",
        f"每个线程束负责 64 行中的 16 行，横跨全部 {columns} 列。每八列里，一个 lane 有第 g 行的两个数和第 g + 8 行的两个数，与 `mma.sync` 相同：总共 {columns // 2} 个数。",
    )
    return figure(s, alt=alt, caption=caption)


def boxes(columns: int = 128) -> str:
    """A factor in boxes: with lines along the depth, and with lines across it; the distances that a descriptor names."""
    cell, top, gap = 15, 66, 300
    s = Svg(700, top + 8 * 18 + 2 * 18 + 76)
    for k, (x, title) in enumerate(
        ((20, tr("lines along the depth: A", "行沿深度方向：A")), (20 + gap + 40, tr("lines across it: B", "行横跨深度：B")))
    ):  # fmt: skip
        s.text(x, 20, title, "bold", "start")
        for line in range(10):
            y = top + line * 18 + (12 if line >= 8 else 0)
            for piece in range(8):
                stands = piece ^ (line % 8)
                cls = "c1" if line < 8 else "c2"
                if k == 0 and stands not in (0, 1):
                    cls = "hollow"
                s.rect(x + piece * (cell + 13), y, cell + 10, 15, cls, stands, rx=2, size=9)
        what = (
            tr("line: a row of A", "一行：A 的一行") if k == 0 else tr("line: one step of depth", "一行：深度的一步")
        )  # fmt: skip
        s.text(x, 44, what, "muted", "start")
        y = top + 10 * 18 + 30
        if k == 0:
            s.text(x, y, tr("stride 1024: from 8 rows to the next", "stride 1024：从 8 行到下 8 行"), "muted", "start")  # fmt: skip
            s.text(
                x, y + 20, tr("16 steps further: 32 bytes", "深入 16 步：32 字节"), "muted", "start"
            )
        else:
            s.text(x, y, tr("stride 1024: from 8 steps to the next", "stride 1024：从 8 步到下 8 步"), "muted", "start")  # fmt: skip
            s.text(x, y + 20, tr(f"leading 8192: to the next of {columns // 64} boxes", f"leading 8192：到下一个盒子（共 {columns // 64} 个）"), "muted", "start")  # fmt: skip
            s.text(
                x,
                y + 40,
                tr("16 steps further: 2048 bytes", "深入 16 步：2048 字节"),
                "muted",
                "start",
            )
    alt = tr(
        "Two boxes of lines of 128 bytes. Left, lines run along the depth and one wgmma reads two pieces of 16 bytes of each line. Right, "
        "a line is one step of depth, and one wgmma reads 16 whole lines. The numbers are the pieces that stand there.",
        "两个盒子，每行 128 字节。左边的行沿深度方向，一条 wgmma 读取每行的两个 16 字节小块；右边的一行是深度的一步，一条 wgmma 读取 16 整行。数字表示该处放的是第几块。",
    )
    caption = tr(
        "The first ten lines of a box; the number is the piece of 16 bytes that stands at this place. Colored: what one wgmma reads of "
        "these lines, the first eight lines (or steps) and the next. With lines along the depth it is two pieces of each line, "
        "which the swizzle has spread over all banks.",
        "盒子的前十行；数字表示放在这里的是第几个 16 字节小块。着色部分是一条 wgmma 从这些行里读取的内容：前八行（或前八步），以及接下来的。行沿深度方向时，它读取每行的两个小块，重排把它们分散到了所有存储体上。",
    )
    return figure(s, alt=alt, caption=caption)
