"""Drawing of the chapter with the picture: pixels have one index, row after row, and blocks take them in that order."""

from cudatut.site.drawing import Grid, Svg, figure, hue, legend, tr


def pixels(width: int = 6, height: int = 4, threads: int = 8, chosen: int = 8) -> str:
    """A picture of width x height pixels; each cell shows its index, its color the block; one of them is worked out."""
    cell, high, left, top = 52, 40, 60, 58  # so narrow that a phone shows all of it
    n = width * height
    row, column = divmod(chosen, width)
    blocks = -(-n // threads)
    s = Svg(left + width * cell + 20, top + height * high + 112)
    s.text(left + width * cell / 2, 18, tr("x, the column", "列 x"), "bold")
    s.text_from(12, top - 10, tr("y, row", "行 y"), "bold")
    cells = Grid(s, left, top, cell, high, gap=5, rx=4).heads(range(width))
    for y in range(height):
        cells.name(y, y)
        cells.row(y, [(hue(i // threads), i) for i in range(y * width, (y + 1) * width)])
    at_x, at_y = cells.center(row, column)
    s.rect(at_x - cell / 2, at_y - high / 2, cell, high, "accent hollow")
    below = top + height * high
    entries = [(hue(b), tr(f"block {b}", f"{b} 号线程块")) for b in range(blocks)]
    legend(s, left, below + 16, entries, step=108, wide=20, high=20)
    s.text_from(
        left,
        below + 72,
        tr(f"i = {chosen}, width = {width}", f"i = {chosen}，width = {width}"),
        "bold",
    )
    s.text_from(left, below + 98, f"x = {chosen} % {width} = {column}", "mono")
    s.text_from(left + 170, below + 98, f"y = {chosen} / {width} = {row}", "mono")
    alt = tr(
        f"A picture of {width} columns and {height} rows. The numbers 0 to {n - 1} run along the rows. {blocks} blocks of "
        f"{threads} threads take them in this order and do not stop at the end of a row. Number {chosen} stands in column "
        f"{column} of row {row}.",
        f"一幅 {width} 列、{height} 行的图，像素沿着行从 0 编到 {n - 1}。{blocks} 个线程块，每块 {threads} 个线程，依次处理这些像素，"
        f"不在一行的末尾断开。{chosen} 号像素在第 {row} 行第 {column} 列。",
    )
    caption = tr(
        f"The number in a cell is `i`, its color the block. A block of {threads} threads does not stop at the end of a row.",
        f"格子里的数是 `i`，颜色表示线程块。每块 {threads} 个线程，到一行的末尾并不断开。",
    )
    return figure(s, alt=alt, caption=caption)
