"""Figures of the chapter on vectorized access: how the tile of A is turned, and which rows begin where."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def brought(t: int, bm: int = 128) -> tuple[int, int]:
    """Row and first depth of the four words of A that thread t brings, as the kernel computes them."""
    i = t // 2
    return i % bm, i // bm * 8 + t % 2 * 4


def turned(rows: int = 6, bk: int = 8) -> str:
    """Rows of A as the threads bring them, and where their words lie in the turned tile."""
    cell, left, top = 32, 40, 52
    right = left + bk * cell + 110
    s = Svg(right + rows * cell + 50, top + bk * cell + 40)
    s.text(left + bk * cell / 2, 24, tr("A, row-major: depth →", "A，行主序：深度 →"), "muted")
    s.text(right + rows * cell / 2, 24, tr("As[depth][row]: row →", "As[深度][行]：行 →"), "muted")
    rowwise, turned_tile = (
        Grid(s, left, top, cell, gap=2, rx=0),
        Grid(s, right, top, cell, gap=2, rx=0),
    )
    for t in range(2 * rows):
        row, inner = brought(t)
        tint = f"c{1 + t % 2 + 2 * (row % 2)}"
        for depth in range(inner, inner + 4):
            rowwise.box(row, depth, tint, f"t{t}" if depth == inner + 1 else None)
            turned_tile.box(depth, row, tint, f"t{t}" if depth == inner + 1 else None, size=13)
    middle = top + rows * cell / 2
    s.arrow(left + bk * cell + 16, middle, right - 16, middle, "accent")
    s.text((left + bk * cell + right) / 2, middle - 12, tr("turned", "转置"), "accent")
    below = tr("one LDG.128 per thread", "每个线程一条 LDG.128")
    s.text_from(left, top + rows * cell + 24, below)
    s.text_from(right, top + bk * cell + 24, tr("four STS per thread", "每个线程四条 STS"))
    alt = tr(
        f"Threads 2r and 2r + 1 bring the eight words of row r of A. In shared memory they stand in column r, so that the words "
        f"of neighboring rows at one depth lie side by side. Shown: {rows} rows.",
        f"线程 2r 与 2r + 1 搬来 A 第 r 行的八个元素，写到共享内存的第 r 列，于是 k 相同的相邻各行的元素左右相邻。图中是 {rows} 行。",
    )
    caption = tr(
        "The first rows of a tile of A. A thread's results need words of neighboring rows at one depth: a column of A, but "
        "a row of As.",
        "A 的一个分块的前几行。线程的结果要用 k 相同的相邻各行的元素：在 A 里是一列，在 As 里是一行。",
    )
    return figure(s, alt=alt, caption=caption)


def alignment(pitches: tuple[int, ...] = (8, 10, 9), rows: int = 4, shown: int = 8) -> str:
    """Where the rows of a matrix begin between multiples of 16 bytes, for several lengths of a row."""
    cell, gap, top = 22, 34, 44
    panel = shown * cell + gap
    s = Svg(20 + panel * len(pitches), top + rows * cell + 16)
    told = []
    for p, pitch in enumerate(pitches):
        cells = Grid(s, 14 + panel * p, top, cell, gap=2, rx=0)
        s.text_from(cells.x, 24, tr(f"{pitch} words per row", f"每行 {pitch} 个元素"), "bold")
        offsets = [row * pitch % 4 for row in range(rows)]  # words past a multiple of 16 bytes
        for row, offset in enumerate(offsets):
            for column in range(shown):
                group, between = divmod(offset + column, 4)
                tint = "c2" if offset else ("c1" if group % 2 == 0 else "c3")
                cells.box(row, column, tint, None if column else offset)
                if not between and column:
                    x, y = cells.corner(row, column)
                    s.line(x - 1, y - 1, x - 1, y + cell - 1, "bold")
        told.append((pitch, offsets.count(0)))
    alt = tr(
        "; ".join(
            f"{pitch} words per row: {good} of {rows} rows begin at a multiple of 16 bytes"
            for pitch, good in told
        )
        + ".",
        "；".join(
            f"每行 {pitch} 个元素：{rows} 行中 {good} 行按 16 字节对齐" for pitch, good in told
        )
        + "。",
    )
    caption = tr(
        "Beginnings of rows; strokes stand at multiples of 16 bytes. The number: how many words past such a multiple the row "
        "begins. Only rows with 0 can be read four words at a time from their first word on.",
        "各行的开头；竖线在 16 字节的整数倍处。数字：行首距前一条竖线几个元素。只有数字为 0 的行，才能从第一个元素起四个四个地读。",
    )
    return figure(s, alt=alt, caption=caption)
