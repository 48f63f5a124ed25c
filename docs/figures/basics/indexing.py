"""Drawings of indexing: rows in memory, who reads what in three loops, and the digits of a thread's id."""

from collections.abc import Callable, Iterable

from cudatut.site.drawing import Grid, Svg, figure, tr

_CELL, _HEIGHT, _GAP = 38, 30, 62


def _panel(
    s: Svg,
    left: float,
    top: float,
    title: str,
    n: int,
    turns: Iterable[int],
    reads: Callable[[int], tuple],
    cls: str,
) -> None:
    """Two rows of n cells, before and after the loop, and an arrow from each element that turn i reads to element i."""
    s.text_from(left, top, title, "bold")
    before = Grid(s, left, top + 14, _CELL, _HEIGHT + 4, gap=4, rx=3)
    after = Grid(s, left, top + 14 + _HEIGHT + _GAP, _CELL, _HEIGHT + 4, gap=4, rx=3)
    turns = set(turns)
    before.row(0, [("c0", i) for i in range(n)])
    after.row(0, [("c2" if i in turns else "c0", i) for i in range(n)])
    for i in sorted(turns):
        for j in reads(i):
            start, end = before.center(0, j)[0], after.center(0, i)[0]
            s.arrow(start, before.y + _HEIGHT + 2, end, after.y - 2, cls)


def row_major(rows: int = 3, columns: int = 6, row: int = 2, column: int = 4) -> str:
    """A matrix with the place of each element in memory, and below it the memory: row after row."""
    edge, left, top = 34, 110, 30
    strip = 660 / (rows * columns)
    s = Svg(680, top + rows * edge + 118)
    below = top + rows * edge + 56
    cells = Grid(s, left, top, edge, gap=4).heads(range(columns), size=12)
    memory = Grid(s, 10, below, strip, 33, size=12)
    for r in range(rows):
        name, marked = tr(f"row {r}", f"第 {r} 行"), (row, column)
        kinds = [f"c{1 + r % 2}" if (r, c) != marked else "c3 solid" for c in range(columns)]
        numbered = [(kind, r * columns + c) for c, kind in enumerate(kinds)]
        cells.name(r, name).row(r, numbered)
        memory.row(0, numbered, first=r * columns)
        s.text(10 + strip * columns * (r + 0.5), below + 50, name, "muted")
    x = left + edge * columns + 24
    s.text_from(x, top + 20, f"{row} * {columns} + {column} = {row * columns + column}", "bold")
    s.text_from(x, top + 46, "row * columns + column", "mono")
    s.text_from(10, below - 10, tr("memory", "内存"), "muted")
    alt = tr(
        f"A matrix of {rows} rows and {columns} columns; in memory the rows follow each other. "
        f"Row {row}, column {column} is element {row * columns + column}.",
        f"一个 {rows} 行 {columns} 列的矩阵；在内存里各行首尾相接。第 {row} 行第 {column} 列是第 {row * columns + column} 个元素。",
    )
    caption = tr(
        f"Row-major: {row} full rows of {columns} come before row {row}.",
        f"行主序：第 {row} 行之前有 {row} 整行，每行 {columns} 个。",
    )
    return figure(s, alt=alt, caption=caption)


def loops(n: int = 8) -> str:
    """A map, a stencil into another array, and a running sum, by what each turn reads."""
    width = _CELL * n
    top = 18 + 2 * _HEIGHT + _GAP + 50  # of the third loop
    level = top + 14 + _HEIGHT
    s = Svg(2 * width + 60, level + 28)
    _panel(s, 8, 18, "out[i] = 2 * x[i]", n, range(n), lambda i: (i,), "c2")
    stencil = "out[i] = x[i - 1] + x[i + 1]"
    _panel(s, width + 48, 18, stencil, n, range(1, n - 1), lambda i: (i - 1, i + 1), "c2")
    s.text_from(8, top, "x[i] = x[i] + x[i - 1]", "bold")
    cells = Grid(s, 8, top + 14, _CELL, _HEIGHT + 4, gap=4, rx=3)
    cells.row(0, [("c1" if i else "c0", i) for i in range(n)])
    for i in range(1, n):
        # Right of the middle, and to the left of it: arrows that met in one point would look like one line through all.
        start, end = cells.center(0, i - 1)[0] + _CELL / 5, cells.center(0, i)[0] - _CELL / 5
        s.polyline([(start, level + 2), (start, level + 20), (end, level + 20)], "warn")
        s.arrow(end, level + 20, end, level + 2, "warn")
    chain = tr(
        f"{n - 1} turns, each after the one\nbefore it: a chain",
        f"{n - 1} 轮，每一轮都要等上一轮：\n一条链",
    )
    s.text_from(width + 48, top + 34, chain, "muted")
    alt = tr(
        f"Three loops over {n} elements. In the first every output element comes from one input element, in the second "
        "from two neighbors of another array; both are maps. In the third every turn needs the result of the turn before.",
        f"处理 {n} 个元素的三个循环。第一个循环里，每个输出元素来自一个输入元素；第二个来自另一个数组里的两个相邻元素；这两个都是映射。第三个循环里，每一轮都要用上一轮的结果。",
    )
    caption = tr(
        "Arrows run from what a turn reads to what it writes. A loop is a map if no turn reads or writes a cell that another turn writes.",
        "箭头从一轮循环读的元素指向这一轮写的元素。如果没有一轮会去读或写别的轮次所写的格子，循环就是映射。",
    )
    return figure(s, alt=alt, caption=caption)


def digits(
    grid: tuple[int, int, int] = (5, 3, 2),
    block: tuple[int, int, int] = (8, 4, 2),
    block_at: tuple[int, int, int] = (3, 1, 1),
    thread_at: tuple[int, int, int] = (6, 2, 1),
) -> str:
    """The six coordinates of one thread as the digits of a number, with what each is worth. Shapes are (x, y, z)."""
    names = [f"blockIdx.{a}" for a in "zyx"] + [f"threadIdx.{a}" for a in "zyx"]
    extents = [*reversed(grid), *reversed(block)]
    values = [*reversed(block_at), *reversed(thread_at)]
    worth = [1] * 6
    for i in range(4, -1, -1):
        worth[i] = worth[i + 1] * extents[i + 1]
    total = sum(v * w for v, w in zip(values, worth))
    cell, left, top = 112, 16, 34
    s = Svg(left * 2 + cell * 6, 178)
    cells = Grid(s, left, top, cell, 52, gap=8, rx=4, size=20)
    cells.row(0, [("c1" if i < 3 else "c2", value) for i, value in enumerate(values)])
    cells.heads(names, "mono", size=14, up=12)
    for i, extent in enumerate(extents):
        middle, last = cells.center(0, i)[0], extent - 1
        s.text(middle, top + 66, tr(f"0 to {last}", f"0 至 {last}"), "muted")
        s.text(middle, top + 92, f"× {worth[i]}", "accent")
    terms = " + ".join(f"{v} · {w}" for v, w in zip(values, worth))
    s.text(left + cell * 3, top + 128, f"{terms} = {total}", "bold")
    alt = tr(
        f"Six digits {values} with the extents {extents}; each digit is worth the product of the extents to its right: "
        f"{worth}. Together they are thread {total}.",
        f"六位数字 {values}，各位的进制为 {extents}；每一位的权是右边各位进制的乘积：{worth}。合起来是第 {total} 号线程。",
    )
    caption = tr(
        f"`grid={grid}`, `block={block}`: the id is a number of six digits, and a digit is worth the product of the extents to its right.",
        f"`grid={grid}`、`block={block}`：线程号是一个六位数，每一位的权是右边各维大小的乘积。",
    )
    return figure(s, alt=alt, caption=caption)
