"""Drawings of wgmma: which warp has which rows, and how the two kinds of lines lie in boxes."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def rows_of_warps(columns: int = 128) -> str:
    """The sums of a warpgroup, 64 rows: 16 for each warp, and what one lane holds of eight columns."""
    left, top, band, wide = 96, 34, 44, 250
    s = Svg(left + wide + 330, top + 4 * band + 20)
    s.text_from(left, 20, tr(f"64 x {columns} sums", f"64 × {columns} 个累加值"), "bold")
    bands = Grid(s, left, top, wide + 4, band, gap=4, rx=3)
    for w in range(4):
        bands.named(w, 8, tr(f"warp {w}", f"线程束 {w}"), "")
        rows = tr(f"rows {16 * w} to {16 * w + 15}", f"第 {16 * w} 到 {16 * w + 15} 行")
        bands.box(w, 0, f"c{w}", rows)
    x, cell = left + wide + 70, 28
    s.text_from(x, 20, tr("8 columns of warp 0", "线程束 0 的 8 列"), "bold")
    lanes = [[4 * r + c // 2 for c in range(8)] for r in range(4)]
    cells = Grid(s, x, top, cell)
    cells.fill(4, 8, lambda r, c: ("c1" if lanes[r][c] == 5 else "hollow", lanes[r][c]))
    below = top + 4 * cell + 20
    s.text_from(x, below, tr("row g: lanes 4g to 4g + 3;", "第 g 行：lane 4g 到 4g + 3；"), "muted")
    s.text_from(
        x, below + 20, tr("row g + 8: the same lanes", "第 g + 8 行：同样这些 lane"), "muted"
    )
    alt = tr(
        f"The 64 x {columns} sums of a warpgroup are four bands of 16 rows, one for each warp. In a row of eight columns four lanes "
        "hold two numbers each.",
        f"线程束组的 64 × {columns} 个累加值分成四条，每条 16 行，由一个线程束负责。每行的八列由四个 lane 各持有两个数。",
    )
    caption = tr(
        f"Each warp has 16 of the 64 rows, over all {columns} columns. Of eight columns a lane has two in row g and two in row g + 8, "
        f"as with `mma.sync`: {columns // 2} numbers altogether.",
        f"每个线程束负责 64 行中的 16 行，横跨全部 {columns} 列。每八列里，一个 lane 有第 g 行的两个数和第 g + 8 行的两个数，与 `mma.sync` 相同：总共 {columns // 2} 个数。",
    )
    return figure(s, alt=alt, caption=caption)


def boxes(columns: int = 128) -> str:
    """A factor in boxes: with lines along the depth, and with lines across it; the distances that a descriptor names."""
    top, gap = 66, 300
    s = Svg(700, top + 8 * 18 + 2 * 18 + 76)
    panels = (
        (
            tr("lines along the depth: A", "行沿深度方向：A"),
            tr("line: a row of A", "一行：A 的一行"),
            tr("stride 1024: from 8 rows to the next", "stride 1024：从 8 行到下 8 行"),
            tr("16 steps further: 32 bytes", "再走 16 步：32 字节"),
        ),
        (
            tr("lines across it: B", "行垂直于深度方向：B"),
            tr("line: one step of depth", "一行：深度的一步"),
            tr("stride 1024: from 8 steps to the next", "stride 1024：从 8 步到下 8 步"),
            tr(
                f"leading 8192: to the next of {columns // 64} boxes",
                f"leading 8192：到下一个盒子（共 {columns // 64} 个）",
            ),
            tr("16 steps further: 2048 bytes", "再走 16 步：2048 字节"),
        ),
    )
    for k, (title, line, *below) in enumerate(panels):
        x = 20 + k * (gap + 40)
        s.text_from(x, 20, title, "bold").text_from(x, 44, line, "muted")
        for number in range(10):
            y = top + number * 18 + (12 if number >= 8 else 0)
            places = [piece ^ (number % 8) for piece in range(8)]
            read = [k == 1 or piece in (0, 1) for piece in places]
            tint = "c1" if number < 8 else "c2"
            kinds = [tint if one else "hollow" for one in read]
            Grid(s, x, y, 28, 18, size=10).row(0, zip(kinds, places))
        for number, words in enumerate(below):
            s.text_from(x, top + 210 + 20 * number, words, "muted")
    alt = tr(
        "Two boxes of lines of 128 bytes. Left, lines run along the depth and one wgmma reads two pieces of 16 bytes of each line. Right, "
        "a line is one step of depth, and one wgmma reads 16 whole lines. The numbers are the pieces that stand there.",
        "两个盒子，每行 128 字节。左边的行沿深度方向，一条 wgmma 读取每行的两个 16 字节的小段；右边的一行是深度的一步，一条 wgmma 读取 16 整行。数字表示该处放的是第几小段。",
    )
    caption = tr(
        "The first ten lines of a box; the number is the piece of 16 bytes that stands at this place. Colored: what one wgmma reads of "
        "these lines, the first eight lines (or steps) and the next. With lines along the depth it is two pieces of each line, "
        "which the swizzle has spread over all banks.",
        "盒子的前十行；数字表示放在这里的是第几小段（16 字节）。着色部分是一条 wgmma 从这些行里读取的内容：前八行（或前八步），以及接下来的。行沿深度方向时，一条 wgmma 读取每行的两小段，这些小段经过重排，分散在所有存储体里。",
    )
    return figure(s, alt=alt, caption=caption)
