"""Drawings of primitives/transpose: what a warp reads and writes, a tile in its banks, and the order of the tiles."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def warp(rows: int = 8, columns: int = 12, lanes: int = 8, row: int = 2) -> str:
    """A warp of `lanes` lanes reads neighbors of a row of x, and writes a column of out."""
    cell, top, gap = 20, 40, 90
    first = 2  # of the columns that it reads
    s = Svg(2 * 8 + (rows + columns) * cell + gap, top + max(rows, columns) * cell + 12)
    right = 8 + columns * cell + gap
    x, out = Grid(s, 8, top, cell, gap=2), Grid(s, right, top, cell, gap=2)
    read = {(row, first + lane): lane for lane in range(lanes)}
    for r in range(rows):
        for c in range(columns):
            lane = read.get((r, c))
            cls = "c0" if lane is None else "c2 solid"
            x.box(r, c, cls, lane, size=11)
            out.box(c, r, cls, lane, size=11)
    s.text_from(8, 22, f"x: {rows} × {columns}", "bold")
    s.text_from(right, 22, f"out: {columns} × {rows}", "bold")
    y = top + (row + 0.5) * cell
    s.arrow(8 + columns * cell + 10, y, right - 12, y, "accent")
    alt = tr(
        f"Left a matrix x of {rows} rows and {columns} columns, in which {lanes} lanes read neighbors of row {row}. Right "
        f"out, of {columns} rows and {rows} columns, in which the same lanes write column {row}, each in another row.",
        f"左边是 {rows} 行 {columns} 列的矩阵 x，{lanes} 个 lane 读第 {row} 行里相邻的元素；右边是 {columns} 行 {rows} 列的 out，"
        f"同样的 lane 写第 {row} 列，各在不同的行。",
    )
    caption = tr(
        "The numbers are lanes of one warp, drawn with fewer lanes than it has. What lies side by side in x lies in different rows of out.",
        "数字是一个线程束的 lane（画得比实际少）。在 x 里相邻的元素，在 out 里位于不同的行。",
    )
    return figure(s, alt=alt, caption=caption)


LAYOUTS = {
    "plain": lambda y, x, side: side * y + x,
    "padded": lambda y, x, side: (side + 1) * y + x,
    "swizzled": lambda y, x, side: side * y + (x ^ y),
}


def most_in_a_bank(layout: str, side: int, column: int) -> int:
    """Words of a column of the tile in the bank that has most of them, with as many banks as the tile has columns."""
    banks = [LAYOUTS[layout](y, column, side) % side for y in range(side)]
    return max(banks.count(bank) for bank in banks)


def tile(side: int = 8, column: int = 2) -> str:
    """A tile of side x side words in `side` banks: where a column stands, with three layouts."""
    cell, top, gap = 22, 62, 40
    wide = side * cell + gap
    s = Svg(3 * wide - gap + 16, top + (side + 1) * cell + 10)
    names = {
        "plain": tr("as it is", "原样"),
        "padded": tr(f"rows of {side + 1}", f"每行 {side + 1} 个字"),
        "swizzled": tr("x ^ y", "x ^ y"),
    }
    told = []
    for k, (layout, name) in enumerate(names.items()):
        left = 8 + k * wide
        banks = Grid(s, left, top, cell, gap=2)
        banks.heads({bank: bank for bank in range(side)}, up=6)
        s.text_from(left, 18, name, "bold")
        high = side + 1 if layout == "padded" else side
        for row in range(high):
            for bank in range(side):
                banks.box(row, bank, "hollow dash muted")
        for y in range(side):
            for x in range(side):
                word = LAYOUTS[layout](y, x, side)
                cls = "c2 solid" if x == column else "c1"
                banks.box(word // side, word % side, cls, f"{y},{x}", size=10)
        passes = most_in_a_bank(layout, side, column)
        told.append(f"{name}: {passes}")
        words = tr(
            f"column {column}: {passes} pass{'es' * (passes > 1)}", f"第 {column} 列：{passes} 趟"
        )
        s.text_from(left, 36, words, "muted", size=12)
    alt = tr(
        f"A tile of {side} by {side} words in {side} banks with three layouts. Passes for column {column}: {'; '.join(told)}.",
        f"{side} × {side} 个字的分块放在 {side} 个存储体里，三种放法。第 {column} 列的趟数：{'；'.join(told)}。",
    )
    caption = tr(
        f"Each box is a word (y, x) of the tile, and stands in its bank, drawn with {side} banks instead of 32. Dark: column {column}, which is read at once.",
        f"每个方框是分块里的一个字 (y, x)，画在它所在的存储体下面；图中只有 {side} 个存储体，实际是 32 个。深色是一次要读的第 {column} 列。",
    )
    return figure(s, alt=alt, caption=caption)


def tile_at(block: int, rows: int, columns: int, group: int) -> tuple[int, int]:
    """The tile of a block, as order.cuh has it."""
    band, within = divmod(block, group * columns)
    height = min(group, rows - band * group)
    column, row = divmod(within, height)
    return band * group + row, column


def orders(rows: int = 4, columns: int = 6, groups: tuple[int, ...] = (1, 2, 4)) -> str:
    """The tiles of x with the numbers of their blocks, in bands of several heights."""
    cell, top, gap = 30, 40, 34
    wide = columns * cell + gap
    s = Svg(len(groups) * wide - gap + 16, top + rows * cell + 8)
    for k, group in enumerate(groups):
        left = 8 + k * wide
        cells = Grid(s, left, top, cell, gap=2)
        name = tr(f"bands of {group}", f"每带 {group} 行")
        s.text_from(left, 22, name, "bold")
        for block in range(rows * columns):
            row, column = tile_at(block, rows, columns, group)
            cells.box(row, column, "c2" if block < rows else "c1", block, size=12)
    alt = tr(
        f"{rows} by {columns} tiles of x, numbered by block, for bands of {', '.join(map(str, groups))} rows of tiles. With one "
        f"row the first blocks lie along a row of x; with {rows} they lie along a column of x, which is a row of out.",
        f"x 的 {rows} × {columns} 个分块，标着线程块的编号；每带分别有 {'、'.join(map(str, groups))} 行分块。每带一行时，最前面的线程块沿着 x 的一行；"
        f"每带 {rows} 行时，它们沿着 x 的一列，也就是 out 的一行。",
    )
    caption = tr(
        f"Tiles of x; the numbers are blocks, which start about in this order. Dark: the first {rows}.",
        f"x 的分块；数字是线程块的编号，线程块大致按这个次序开始。深色是最前面的 {rows} 个。",
    )
    return figure(s, alt=alt, caption=caption)
