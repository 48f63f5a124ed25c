"""Drawings of indexing: rows in memory, who reads what in three loops, and the digits of a thread's id."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cudatut.site.svg import Svg, figure, tr

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
    s.text(left, top, title, "bold", "start")
    before, after = top + 14, top + 14 + _HEIGHT + _GAP
    turns = set(turns)
    for i in range(n):
        x = left + _CELL * i
        s.rect(x, before, _CELL - 4, _HEIGHT, "c0", i, rx=3)
        s.rect(x, after, _CELL - 4, _HEIGHT, "c2" if i in turns else "c0", i, rx=3)
    middle = (_CELL - 4) / 2
    for i in sorted(turns):
        for j in reads(i):
            s.arrow(
                left + _CELL * j + middle,
                before + _HEIGHT + 2,
                left + _CELL * i + middle,
                after - 2,
                cls,
            )


def row_major(rows: int = 3, columns: int = 6, row: int = 2, column: int = 4) -> str:
    """A matrix with the place of each element in memory, and below it the memory: row after row."""
    edge, left, top = 34, 110, 30
    strip = 660 / (rows * columns)
    s = Svg(680, top + rows * edge + 118)
    below = top + rows * edge + 56
    for c in range(columns):
        s.text(left + edge * (c + 0.5) - 2, top - 9, c, "muted", size=12)
    for r in range(rows):
        s.text(left - 10, top + edge * r + 22, tr(f"row {r}", f"第 {r} 行"), "muted", "end")
        for c in range(columns):
            at = r * columns + c
            cls = "c3 solid" if (r, c) == (row, column) else f"c{1 + r % 2}"
            s.rect(left + edge * c, top + edge * r, edge - 4, edge - 4, cls, at, rx=2)
            s.rect(10 + strip * at, below, strip - 3, 30, cls, at, rx=2, size=12)
    x = left + edge * columns + 24
    s.text(x, top + 20, f"{row} * {columns} + {column} = {row * columns + column}", "bold", "start")
    s.text(x, top + 46, "row * columns + column", "mono", "start")
    for r in range(rows):
        middle = 10 + strip * columns * (r + 0.5)
        s.text(middle, below + 50, tr(f"row {r}", f"第 {r} 行"), "muted")
    s.text(10, below - 10, tr("memory", "内存"), "muted", "start")
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
    s = Svg(2 * width + 60, 2 * (_HEIGHT * 2 + _GAP) + 84)
    _panel(s, 8, 18, "out[i] = 2 * x[i]", n, range(n), lambda i: (i,), "c2")
    _panel(
        s,
        width + 48,
        18,
        "out[i] = x[i - 1] + x[i + 1]",
        n,
        range(1, n - 1),
        lambda i: (i - 1, i + 1),
        "c2",
    )
    top = 18 + 2 * _HEIGHT + _GAP + 50
    left, row = 8, top + 14
    s.text(left, top, "x[i] = x[i] + x[i - 1]", "bold", "start")
    for i in range(n):
        x = left + _CELL * i
        s.rect(x, row, _CELL - 4, _HEIGHT, "c1" if i else "c0", i, rx=3)
        if i:
            center, level = x + (_CELL - 4) / 2, row + _HEIGHT
            s.polyline(
                [(center - _CELL, level + 2), (center - _CELL, level + 20), (center, level + 20)],
                "warn",
            )
            s.arrow(center, level + 20, center, level + 2, "warn")
    s.text(
        width + 48,
        row + 20,
        tr(
            f"{n - 1} turns, each after the one\nbefore it: a chain",
            f"{n - 1} 轮，每一轮都要等上一轮：\n一条链",
        ),
        "muted",
        "start",
    )
    alt = tr(
        f"Three loops over {n} elements. In the first every output element comes from one input element, in the second "
        "from two neighbors of another array; both are maps. In the third every turn needs the result of the turn before.",
        f"{n} 个元素上的三个循环。第一个循环里，每个输出元素来自一个输入元素；第二个来自另一个数组里的两个相邻元素；这两个都是映射。第三个循环里，每一轮都要用上一轮的结果。",
    )
    caption = tr(
        "Arrows run from what a turn reads to what it writes. No arrow starts at a cell that another turn writes: a map.",
        "箭头从一轮循环读的元素指向它写的元素。只要没有箭头从别的轮次要写的格子出发，就是映射。",
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
    for i, name in enumerate(names):
        x = left + cell * i
        s.text(x + cell / 2 - 4, top - 12, name, "mono")
        s.rect(x, top, cell - 8, 44, "c1" if i < 3 else "c2", values[i], size=20)
        s.text(
            x + cell / 2 - 4,
            top + 66,
            tr(f"0 to {extents[i] - 1}", f"0 至 {extents[i] - 1}"),
            "muted",
        )
        s.text(x + cell / 2 - 4, top + 92, f"× {worth[i]}", "accent")
    terms = " + ".join(f"{v} · {w}" for v, w in zip(values, worth))
    s.text(left + cell * 3, top + 128, f"{terms} = {total}", "bold")
    alt = tr(
        f"Six digits {values} with the extents {extents}; each digit is worth the product of the extents to its right: "
        f"{worth}. Together they are thread {total}.",
        f"六位数字 {values}，各位的进制为 {extents}；每一位的权是它右边各进制的乘积：{worth}。合起来是第 {total} 号线程。",
    )
    caption = tr(
        f"`grid={grid}`, `block={block}`: the id is a number of six digits, and a digit is worth the product of the extents to its right.",
        f"`grid={grid}`、`block={block}`：线程号是一个六位数，每一位的权是右边各维大小的乘积。",
    )
    return figure(s, alt=alt, caption=caption)
