"""Drawings for mma.sync: where the eight rows of a matrix of ldmatrix stand, and the tile of a block divided among warps."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def layouts(piece: int = 3) -> str:
    """One piece of eight lines in three layouts; a column is a group of four banks."""
    cell, high, top, gap = 24, 20, 66, 44
    kinds = (
        (tr("lines of 128 bytes", "每行 128 字节"), lambda row: piece),
        (tr("padded to 144 bytes", "填充到 144 字节"), lambda row: (piece + row) % 8),
        (tr("swizzled", "异或重排"), lambda row: piece ^ row % 8),
    )
    s = Svg(20 + 3 * (8 * cell + gap), top + 8 * high + 34)
    for k, (title, group) in enumerate(kinds):
        groups = [group(row) for row in range(8)]
        worst = max(groups.count(g) for g in groups)
        cells = Grid(s, 14 + k * (8 * cell + gap), top, cell, high, gap=2, size=10)
        s.text_from(cells.x, 20, title, "bold")
        cells.heads((4 * g for g in range(8)), up=14)
        for row, at in enumerate(groups):
            cells.row(row, [("c1", row) if g == at else "hollow" for g in range(8)])
        below = top + 8 * high + 22
        s.text_from(cells.x, below, tr(f"passes: {worst}", f"趟数：{worst}"), "muted")
    alt = tr(
        f"Piece {piece} of eight lines in three layouts. Without padding or swizzle all eight are in the same four banks; in the other two each is in "
        "four banks of its own.",
        f"八行的第 {piece} 小段在三种布局中的位置。不填充也不重排时，八小段都在同样四个存储体里；另外两种布局中，每小段各占四个存储体。",
    )
    caption = tr(
        f"What `ldmatrix` reads for one matrix: piece {piece} of eight lines. A column is four banks, named by the first; the number is the line.",
        f"`ldmatrix` 读一个矩阵，就是读八行的第 {piece} 小段。每列是四个存储体，标出第一个的编号；数字是行号。",
    )
    return figure(s, alt=alt, caption=caption)


def warps(rows: int = 128, columns: int = 256, warp_rows: int = 64, warp_columns: int = 64) -> str:
    """The tile of a block, divided among its warps, and which rows and columns one of them reads."""
    scale, left, top = 1.1, 150, 70
    s = Svg(left + columns * scale + 250, top + rows * scale + 30)
    across, down = columns // warp_columns, rows // warp_rows
    mine = across + 1
    cells = Grid(s, left, top, warp_columns * scale, warp_rows * scale, gap=2)
    for w in range(down * across):
        name = tr(f"warp {w}", f"线程束 {w}")
        cells.box(*divmod(w, across), "c1" if w == mine else "hollow", name)
    x, y = cells.corner(*divmod(mine, across))
    s.rect(left - 60, y, 48, warp_rows * scale - 2, "c2", "A", rx=3)
    s.rect(x, 14, warp_columns * scale - 2, 44, "c3", "B", rx=3)
    x, sums = left + columns * scale + 24, warp_rows * warp_columns // 32
    of_warp = tr(f"a warp: {warp_rows} x {warp_columns}", f"线程束：{warp_rows} × {warp_columns}")
    s.text_from(x, top + 24, tr(f"block: {rows} x {columns}", f"线程块：{rows} × {columns}"))
    s.text_from(x, top + 46, of_warp)
    s.text_from(x, top + 68, tr(f"sums of a lane: {sums}", f"每个 lane 的累加值：{sums}"), "muted")
    alt = tr(
        f"A tile of {rows} x {columns} divided among {down * across} warps. Warp {mine} reads {warp_rows} rows of A and "
        f"{warp_columns} columns of B.",
        f"{rows} × {columns} 的分块分给 {down * across} 个线程束。线程束 {mine} 读取 A 的 {warp_rows} 行和 B 的 {warp_columns} 列。",
    )
    caption = tr(
        f"Each warp reads its {warp_rows} rows of A and {warp_columns} columns of B from shared memory; those beside it and below it read parts of the same.",
        f"每个线程束从共享内存读取自己要用的 A 的 {warp_rows} 行和 B 的 {warp_columns} 列；旁边和下面的线程束会重复读取其中一部分。",
    )
    return figure(s, alt=alt, caption=caption)
