"""Drawings of the naive matrix product: one result, the grid over C, and what the first warp reads."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def product(m: int = 6, n: int = 8, k: int = 5, row: int = 2, column: int = 5) -> str:
    """C = A B with one element of C, the row of A and the column of B that it needs."""
    cell, gap = 30, 34
    left, top = 70, 44
    s = Svg(left + cell * (k + n) + gap + 40, top + cell * (k + m) + gap + 16)
    b_left, c_top = left + cell * k + gap, top + cell * k + gap

    def matrix(x, y, rows, columns, kind, name, size) -> None:
        s.text_to(x - 12, y + 16, name, "bold").text(x + columns * cell / 2, y - 10, size, "muted")
        Grid(s, x, y, cell).fill(rows, columns, kind)

    matrix(left, c_top, m, k, lambda r, c: "c1" if r == row else "c0", "A", f"m × k = {m} × {k}")
    matrix(b_left, top, k, n, lambda r, c: "c2" if c == column else "c0", "B", f"k × n = {k} × {n}")
    at = (row, column)
    matrix(b_left, c_top, m, n, lambda r, c: "c3 solid" if (r, c) == at else "c0", "", "")
    s.text_from(b_left + n * cell + 8, c_top + 16, "C", "bold")
    x, y = Grid(s, b_left, c_top, cell).center(row, column)
    s.arrow(left + k * cell, y, b_left + column * cell - 4, y, "c1")
    s.arrow(x, top + k * cell, x, c_top + row * cell - 4, "c2")
    alt = tr(
        f"C is {m} by {n}. The marked element in row {row}, column {column} needs row {row} of A and column {column} of B, {k} elements each.",
        f"C 是 {m} × {n}。第 {row} 行第 {column} 列的元素需要 A 的第 {row} 行和 B 的第 {column} 列，各 {k} 个元素。",
    )
    caption = tr(
        f"One element of C is {k} multiplications and additions; {m * n} elements share {m * k} of A and {k * n} of B.",
        f"C 的一个元素要做 {k} 次乘加；{m * n} 个元素共用 A 的 {m * k} 个元素和 B 的 {k * n} 个元素。",
    )
    return figure(s, alt=alt, caption=caption)


def cover(m: int = 100, n: int = 70, tile: int = 32) -> str:
    """The blocks that cover C of m x n; what lies outside is dashed."""
    across, down = -(-n // tile), -(-m // tile)
    scale, left, top = 2.6, 92, 30
    edge = tile * scale
    s = Svg(left + across * edge + 250, top + down * edge + 16)
    blocks = Grid(s, left, top, edge, gap=2, rx=0)
    blocks.fill(down, across, lambda y, x: ("hollow dash muted", f"({x}, {y})"))
    s.rect(left, top, n * scale, m * scale, "hollow accent", rx=0)
    s.text(left + n * scale / 2, top - 10, f"n = {n}", "accent")
    s.text_to(left - 10, top + m * scale / 2, f"m = {m}", "accent")
    threads = across * down * tile**2
    counts = tr(
        f"blockIdx.x: 0 to {across - 1}\nblockIdx.y: 0 to {down - 1}\n{threads} threads\n{m * n} elements\n{threads - m * n} threads idle",
        f"blockIdx.x：0 至 {across - 1}\nblockIdx.y：0 至 {down - 1}\n{threads} 个线程\n{m * n} 个元素\n{threads - m * n} 个线程无事可做",
    )
    s.text_from(left + across * edge + 20, top + 30, counts)
    alt = tr(
        f"{across} by {down} blocks of {tile} by {tile} threads cover a matrix of {m} rows and {n} columns; the last column and the last row of blocks stick out.",
        f"{across} × {down} 个 {tile} × {tile} 的线程块盖住一个 {m} 行 {n} 列的矩阵，最右一列和最下一行的线程块超出了矩阵。",
    )
    return figure(
        s,
        alt=alt,
        caption=tr(
            f"{across} = ⌈{n}/{tile}⌉ blocks to the right, {down} = ⌈{m}/{tile}⌉ downwards; a pair is `blockIdx` as (x, y).",
            f"向右 {across} = ⌈{n}/{tile}⌉ 个线程块，向下 {down} = ⌈{m}/{tile}⌉ 个；括号里是 `blockIdx` 的 (x, y)。",
        ),
    )


def first_warp(lanes: int = 8) -> str:
    """What the lanes of the first warp read in one turn of the loop, and write, in both mappings (a warp of `lanes`)."""
    cell, gap, top = 20, 22, 62
    panel = 2 * lanes * cell + gap
    s = Svg(2 * panel + 3 * 24, top + 2 * lanes * cell + gap + 12)
    for side, (name, down) in enumerate((("naive_rows", True), ("naive_columns", False))):
        left = 24 + side * (panel + 24)
        b_left, c_top = left + lanes * cell + gap, top + lanes * cell + gap
        s.text(left + panel / 2, 20, name, "mono bold")
        turn, warp = lanes // 3, range(lanes)
        for x, y, label, cls, marked in (
            (left, c_top, "A", "c1", {(r if down else 0, turn) for r in warp}),
            (b_left, top, "B", "c2", {(turn, 0 if down else c) for c in warp}),
            (b_left, c_top, "C", "c3", {(i, 0) if down else (0, i) for i in warp}),
        ):
            s.text(x + lanes * cell / 2, y - 6, label, "bold")
            cells = Grid(s, x, y, cell, gap=2)
            for r in warp:
                cells.row(r, [f"{cls} solid" if (r, c) in marked else "c0" for c in warp])
    alt = tr(
        f"A warp of {lanes} lanes in one turn of the loop. With naive_rows it reads {lanes} elements of a column of A and one of B, "
        f"and writes a column of C. With naive_columns it reads one element of A and {lanes} neighbors in a row of B, and writes a row of C.",
        f"一个 {lanes} 线程的线程束在循环的一轮里：naive_rows 读 A 的一列 {lanes} 个元素和 B 的一个元素，写 C 的一列；naive_columns 读 A 的一个元素和 B 一行里相邻的 {lanes} 个元素，写 C 的一行。",
    )
    caption = tr(
        f"Drawn with a warp of {lanes}. Both read {lanes} + 1 elements. In memory a row is contiguous, a column is not.",
        f"图中的线程束画成 {lanes} 个线程。两者读的都是 {lanes} + 1 个元素；在内存里，一行是连续的，一列不是。",
    )
    return figure(s, alt=alt, caption=caption)
