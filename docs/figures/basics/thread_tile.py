"""Drawings of thread tiles: what a thread reads for its results, the tiles of the rung, and who loads and owns what."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def reuse(n: int = 7, shapes: tuple[tuple[int, int], ...] = ((1, 1), (4, 1), (4, 4))) -> str:
    """What one thread reads of two n x n matrices for high x wide results, and how much that is for each."""
    cell, gap, panel = 11, 12, 224
    side = n * cell
    s = Svg(panel * len(shapes), 2 * side + gap + 70)
    told = []
    for i, (high, wide) in enumerate(shapes):
        x, y = 10 + panel * i, 34
        s.text_from(x, 18, tr(f"{high} × {wide} results", f"{high} × {wide} 个结果"), "bold")
        rows, columns = range(1, 1 + high), range(1, 1 + wide)
        # B above C, A to the left of it: a row of A and a column of B meet in their result.
        b, a, c = (
            Grid(s, x + right * (side + gap), y + below * (side + gap), cell, gap=1.5, rx=0)
            for right, below in ((1, 0), (0, 1), (1, 1))
        )
        for r in range(n):
            for q in range(n):
                in_b, in_a = q in columns, r in rows
                b.box(r, q, "c3 solid" if in_b else "c0")
                a.box(r, q, "c1 solid" if in_a else "c0")
                c.box(r, q, "c2 solid" if in_a and in_b else "c0")
        loads = n * (high + wide)
        each = loads / (high * wide)
        told.append((high, wide, loads, each))
        words = tr(f"{loads} loads, {each:.4g} each", f"{loads} 次读取，平均 {each:.4g}")
        s.text_from(x, y + 2 * side + gap + 22, words)
        s.text_from(x + 4, y + side + gap - 5, "A", "muted")
        s.text_from(x + side + gap + 4, y - 4, "B", "muted")
    listed = "; ".join(f"{h} x {w}: {loads} loads" for h, w, loads, _ in told)
    alt = tr(
        f"Rows of A and columns of B that one thread reads for its results of two {n} x {n} matrices. {listed}.",
        f"一个线程算自己的结果要读的 A 的行与 B 的列（矩阵 {n} × {n}）："
        + "；".join(f"{h} × {w}：{loads} 次读取" for h, w, loads, _ in told)
        + "。",
    )
    caption = tr(
        f"Matrices of {n} x {n}. Loads grow with the edges of the thread's tile, results with its area.",
        f"矩阵 {n} × {n}。读取次数随线程分块的边长增加，结果个数随面积增加。",
    )
    return figure(s, alt=alt, caption=caption)


def block(bm: int = 64, bn: int = 64, bk: int = 8, tm: int = 8) -> str:
    """The tiles of a block to scale, and the part of one thread: tm results below each other."""
    scale, left, top = 3, 60, 46
    s = Svg(640, top + scale * (bk + bm) + 84)
    x_b, y_b = left + scale * bk + 50, top
    x_a, y_c = left, top + scale * bk + 34
    s.rect(x_b, y_b, scale * bn, scale * bk, "c3", rx=0)
    s.text(x_b + scale * bn / 2, y_b - 8, f"B: {bk} × {bn}", "muted")
    s.rect(x_a, y_c, scale * bk, scale * bm, "c1", rx=0)
    s.text(x_a + scale * bk / 2, y_c + scale * bm + 18, f"A: {bm} × {bk}", "muted")
    s.rect(x_b, y_c, scale * bn, scale * bm, "c0", rx=0)
    s.text(x_b + scale * bn / 2, y_c + scale * bm + 18, f"C: {bm} × {bn}", "muted")
    column, first = bn * 5 // 8, tm * 2
    s.rect(x_b + scale * column, y_b, scale, scale * bk, "c3 solid", rx=0)
    s.rect(x_a, y_c + scale * first, scale * bk, scale * tm, "c1 solid", rx=0)
    s.rect(x_b + scale * column, y_c + scale * first, scale, scale * tm, "c2 solid", rx=0)
    threads = bm * bn // tm
    x = x_b + scale * bn + 26
    said = (
        tr(f"{threads} threads", f"{threads} 个线程"),
        tr(f"one thread: {tm} results", f"一个线程：{tm} 个结果"),
        tr("per step of K: 1 word of B,", "沿 K 走一步：B 读 1 个元素，"),
        tr(f"{tm} words of A, {tm} FMAs", f"A 读 {tm} 个元素，做 {tm} 次 FMA"),
    )
    for i, line in enumerate(said):
        s.text_from(x, y_c + 30 + 24 * i, line, "bold" if i == 1 else "")
    alt = tr(
        f"A block of {threads} threads computes {bm} x {bn} of C from tiles {bm} x {bk} of A and {bk} x {bn} of B; one thread "
        f"computes {tm} elements of one column.",
        f"{threads} 个线程的线程块，用 A 的 {bm} × {bk} 分块和 B 的 {bk} × {bn} 分块，计算 C 的 {bm} × {bn}；一个线程负责同一列的 {tm} 个元素。",
    )
    caption = tr(
        "To scale. Dark: what one thread reads and computes in one pass over the tiles.",
        "按比例绘制。深色：处理一对分块时，一个线程读取和计算的部分。",
    )
    return figure(s, alt=alt, caption=caption)


def owners(
    bm: int = 64, bn: int = 64, bk: int = 8, tm: int = 8, shown: tuple[int, ...] = (0, 1, 63, 64)
) -> str:
    """Who loads which word of the tiles, and who owns which results: in each box stands the number of a thread.

    A corner of each tile: rows and columns that a dotted gap leaves out go on in the same way. `shown` threads are dark.
    """
    wide, high = 33, 21
    # The rows of C that one thread owns, and the same rows of A: the first two and the last of each group that is drawn.
    groups = (0, 1, bm // tm - 1)
    places = {0: 0, 1: 5.2, bm // tm - 1: 11.4}  # in cells from the top
    columns = {0: 0, 1: 1, 2: 2, bn - 2: 4, bn - 1: 5}  # of B and of C, with their place
    left, top = 54, 60
    s = Svg(640, top + 4 * high + 72 + 15.4 * high + 30)
    a = Grid(s, left, top + 4 * high + 72, wide, high, gap=2, size=12)
    b = Grid(s, left + bk * wide + 74, top, wide, high, gap=2, size=12)
    c = Grid(s, left + bk * wide + 74, a.y, wide, high, gap=2, size=12)

    def of(thread: int, hue: str) -> str:
        return f"{hue} solid" if thread in shown else hue

    loads = tr("which thread loads it", "由哪个线程读入")
    for grid, tile, said in (
        (b, f"b: {bk} × {bn}", loads),
        (a, f"a: {bm} × {bk}", loads),
        (c, f"C: {bm} × {bn}", tr("which thread owns it", "归哪个线程")),
    ):
        s.text_from(grid.x, grid.y - 44, tile, "bold")
        s.text_from(grid.x, grid.y - 27, said)
    for column, at in columns.items():
        for grid in (b, c):
            s.text(grid.center(0, at)[0], grid.y - 8, column, "muted", size=12)
    for column in range(bk):
        s.text(a.center(0, column)[0], a.y - 8, column, "muted", size=12)
    for row, line in ((0, 0), (1, 1), (bk - 1, 3)):
        s.text_to(b.x - 8, b.center(line, 0)[1] + 4, row, "muted", size=12)
        for column, at in columns.items():
            t = row * bn + column  # the thread whose t / BN and t % BN these are
            b.box(line, at, of(t, "c3"), t)
        s.text(b.center(line, 3)[0], b.center(line, 3)[1] + 4, "…", "muted")
    s.text(b.center(2, 2.5)[0], b.center(2, 0)[1] + 4, "⋮", "muted")
    for group in groups:
        first, begin = group * tm, places[group]
        for row, down in ((first, 0), (first + 1, 1), (first + tm - 1, 3)):
            level = a.center(begin + down, 0)[1] + 4
            s.text_to(left - 8, level, row, "muted", size=12)
            s.text_to(c.x - 8, level, row, "muted", size=12)
            for column in range(bk):
                t = row * bk + column
                a.box(begin + down, column, of(t, "c1"), t)
        s.text(a.center(0, (bk - 1) / 2)[0], a.center(begin + 2, 0)[1] + 4, "⋮", "muted")
        for column, at in columns.items():
            t = group * bn + column  # t / BN * TM is the first of its rows, t % BN its column
            c.box(begin, at, of(t, "c2"), t, down=4)
        s.text(c.center(0, 3)[0], c.center(begin + 1.5, 0)[1] + 4, "…", "muted")
    for grid, middle in ((a, (bk - 1) / 2), (c, 2.5)):
        s.text(grid.center(0, middle)[0], grid.center(places[1] + 4.6, 0)[1] + 4, "⋮", "muted")
    told = [
        (t, t // bk, t % bk, t // bn, t % bn, t % bn, t // bn * tm, t // bn * tm + tm - 1)
        for t in shown
    ]
    alt = tr(
        "Which thread loads which word, and which thread owns which results. "
        + " ".join(
            f"Thread {t} loads a[{ar}][{ac}] and b[{br}][{bc}] and owns rows {r0} to {r1} of column {x} of the block's part of C."
            for t, ar, ac, br, bc, x, r0, r1 in told
        ),
        "哪个线程读哪个元素，哪些结果归哪个线程。"
        + "".join(
            f"线程 {t} 读入 a[{ar}][{ac}] 和 b[{br}][{bc}]，负责 C 的这一块里第 {x} 列的第 {r0} 到 {r1} 行。"
            for t, ar, ac, br, bc, x, r0, r1 in told
        ),
    )
    listed = ", ".join(str(t) for t in shown)
    caption = tr(
        f"The number in a box is the thread's. Dark: threads {listed}. Rows and columns are numbered inside the tiles.",
        f"方格里的数是线程的编号。深色：线程 {listed.replace(', ', '、')}。行号、列号都从分块的左上角数起。",
    )
    return figure(s, alt=alt, caption=caption)
