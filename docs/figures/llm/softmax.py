"""Figures of the chapter on softmax: how often each kernel walks over a row, and which columns a row sees."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def passes() -> str:
    """The walks of each kernel over a row, from left to right in time; which of them ask for the row from global memory."""
    largest, total = tr("largest", "最大值"), tr("sum", "求和")
    both, write = tr("largest and sum", "最大值与总和"), tr("quotients", "求商")
    # name, [(what, asks for x, writes)]
    kernels = (
        ("three_pass", [(largest, True, False), (total, True, False), (write, True, True)]),
        ("online", [(both, True, False), (write, True, True)]),
        ("fused", [(largest, True, False), (total, False, False), (write, False, True)]),
        ("shared", [(both, True, False), (write, False, True)]),
        ("cluster", [(largest, True, False), (total, False, False), (write, False, True)]),
    )
    left, box, gap, row = 96, 158, 18, 62
    s = Svg(left + 3 * (box + gap) + 10, 20 + row * len(kernels))
    told = []
    for k, (name, walks) in enumerate(kernels):
        y = 12 + row * k
        s.text_from(4, y + 24, name, "mono")
        reads = sum(asks for _, asks, _ in walks)
        for i, (what, asks, writes) in enumerate(walks):
            x = left + i * (box + gap)
            s.rect(x, y, box, 38, "c1" if asks else "c0", what)
            if i:
                s.arrow(x - gap + 1, y + 19, x - 2, y + 19, "muted")
            if writes:
                s.rect(x + box - 10, y, 10, 38, "c3 solid", rx=0)
        told.append((name, reads))
    alt = tr(
        "; ".join(f"{name} asks global memory for the row {n} times" for name, n in told)
        + ". Each writes the result once.",
        "；".join(f"{name} 从全局内存读这一行 {n} 次" for name, n in told)
        + "。每个 kernel 都只写一次结果。",
    )
    caption = tr(
        "Each box is a walk over the row. Tinted boxes read it from global memory; in the others it is in registers (`fused`, `cluster`) or in shared memory (`shared`). The bar at the right edge of a box: the result is written.",
        "每个方框表示把这一行走一遍。有颜色的方框从全局内存读；其余方框里，这一行已经在寄存器（`fused`、`cluster`）或共享内存（`shared`）里。方框右边的竖条：写出结果。",
    )
    return figure(s, alt=alt, caption=caption)


def seen(row: int, width: int, queries: int, lengths: tuple[int, ...] | None) -> int:
    """As `columns_seen` of softmax.cuh has it."""
    found = width
    if queries > 0:
        found = width - (queries - 1 - row % queries)
    if lengths:
        found = min(found, lengths[row])
    return max(found, 0)


def masks(queries: int = 5, width: int = 8, lengths: tuple[int, ...] = (8, 5, 2, 0, 7)) -> str:
    """What each row sees: causal queries at the end of a sequence, and rows of given lengths."""
    cell, left, top, gap = 30, 60, 54, 130
    right = left + width * cell + gap
    s = Svg(right + width * cell + 20, top + queries * cell + 14)
    panels = (
        (left, tr(f"causal, queries = {queries}", f"因果，queries = {queries}"), queries, None),
        (right, tr("lengths", "lengths"), 0, lengths),
    )
    for x0, title, of, given in panels:
        cells = Grid(s, x0, top, cell, gap=2, rx=0)
        s.text(x0 + width * cell / 2, 22, title, "bold")
        s.text(x0 + width * cell / 2, 42, tr("column →", "列 →"), "muted", size=13)
        for r in range(queries):
            count = seen(r, width, of, given)
            cells.name(r, given[r] if given else tr(f"row {r}", f"行 {r}"), size=13)
            cells.row(r, ["c1"] * count + ["c0 hollow"] * (width - count))
    causal = ", ".join(str(seen(r, width, queries, None)) for r in range(queries))
    those = ", ".join(map(str, lengths))
    alt = tr(
        f"{queries} rows of {width} columns. Causal: rows 0 to {queries - 1} see the first {causal} columns. With lengths: the first {those}.",
        f"{queries} 行，每行 {width} 列。因果：第 0 到 {queries - 1} 行分别看得到前 {causal} 列。给定 lengths：分别看得到前 {those} 列。",
    )
    caption = tr(
        f"Tinted columns are seen. Left: the {queries} newest tokens of a sequence of {width}; the last one sees all. Right: each row has a length of its own.",
        f"有颜色的列看得到。左：长度为 {width} 的序列里最新的 {queries} 个词元，最后一个看得到全部。右：每行有自己的长度。",
    )
    return figure(s, alt=alt, caption=caption)
