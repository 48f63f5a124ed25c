"""Figures of the chapter on two-dimensional thread tiles: who computes what, and what a shape of tile costs."""

from cudatut.site.drawing import Svg, figure, tr


def place(t: int, bn: int, tm: int, tn: int) -> tuple[int, int]:
    """First column and row of thread t's results in the tile, as the kernel computes them."""
    return t % (bn // tn) * tn, t // (bn // tn) * tm


def block(bm: int = 128, bn: int = 128, bk: int = 8, tm: int = 8, tn: int = 8, chosen: int = 87):
    """The tiles of a block to scale, with the threads of one warp and the results and operands of one thread."""
    scale, left, top = 2, 60, 40
    threads = bm * bn // (tm * tn)
    x_b, y_b = left + scale * bk + 34, top
    x_a, y_c = left, top + scale * bk + 30
    s = Svg(640, y_c + scale * bm + 34)
    s.rect(x_b, y_b, scale * bn, scale * bk, "c3", rx=0)
    s.text(x_b + scale * bn / 2, y_b - 8, f"B: {bk} × {bn}", "muted")
    s.rect(x_a, y_c, scale * bk, scale * bm, "c1", rx=0)
    s.text(x_a + scale * bk / 2, y_c + scale * bm + 20, f"A: {bm} × {bk}", "muted")
    warp = range(chosen // 32 * 32, chosen // 32 * 32 + 32)
    for t in range(threads):
        x, y = place(t, bn, tm, tn)
        kind = "c2 solid" if t == chosen else "c2" if t in warp else "c0"
        s.rect(x_b + scale * x, y_c + scale * y, scale * tn - 1, scale * tm - 1, kind, rx=0)
    s.text(x_b + scale * bn / 2, y_c + scale * bm + 20, f"C: {bm} × {bn}", "muted")
    x, y = place(chosen, bn, tm, tn)
    s.rect(x_b + scale * x, y_b, scale * tn, scale * bk, "c3 solid", rx=0)
    s.rect(x_a, y_c + scale * y, scale * bk, scale * tm, "c1 solid", rx=0)
    said = (
        tr(f"{threads} threads", f"{threads} 个线程"),
        tr(f"one thread: {tm} × {tn} results", f"一个线程：{tm} × {tn} 个结果"),
        tr("per unit of depth:", "每个 k："),
        tr(f"{tm} words of A, {tn} of B,", f"读 A 的 {tm} 个元素、B 的 {tn} 个，"),
        tr(f"{tm * tn} FMAs", f"做 {tm * tn} 次 FMA"),
    )
    for i, line in enumerate(said):
        cls = "bold" if i == 1 else ""
        s.text_from(x_b + scale * bn + 24, y_c + 40 + 24 * i, line, cls)
    rows = len({place(t, bn, tm, tn)[1] for t in warp})
    alt = tr(
        f"A block of {threads} threads computes {bm} x {bn} of C from tiles {bm} x {bk} of A and {bk} x {bn} of B; a thread "
        f"computes {tm} x {tn} of it, and the 32 threads of a warp stand in {rows} rows of {32 // rows}.",
        f"{threads} 个线程的线程块，用 A 的 {bm} × {bk} 分块和 B 的 {bk} × {bn} 分块计算 C 的 {bm} × {bn}；一个线程算其中 {tm} × {tn} "
        f"个，一个线程束的 32 个线程排成 {rows} 行，每行 {32 // rows} 个。",
    )
    caption = tr(
        "To scale. Each square of C is a thread's; tinted are those of one warp, dark is one thread with what it reads.",
        "按比例绘制。C 里每个小方块由一个线程计算；着色的属于同一个线程束，深色的是一个线程计算和读取的部分。",
    )
    return figure(s, alt=alt, caption=caption)


def shapes(
    tiles: tuple[tuple[int, int], ...] = (
        (1, 1),
        (8, 1),
        (4, 4),
        (8, 4),
        (8, 8),
        (16, 8),
        (16, 16),
    ),
    limit: int = 255,
) -> str:
    """Thread tiles: FMAs for each word from shared memory, and the registers for sums and operands."""
    row, left, wide = 30, 84, 170
    s = Svg(640, 44 + row * len(tiles) + 8)
    second = left + wide + 100
    most = max(tm * tn / (tm + tn) for tm, tn in tiles)
    needed = [tm * tn + tm + tn for tm, tn in tiles]
    s.text_from(left, 22, tr("FMAs per word", "每个元素做的 FMA"), "bold")
    s.text_from(second, 22, tr("registers, at least", "至少要用的寄存器"), "bold")
    unit = wide / max(needed)
    told = []
    for i, ((tm, tn), registers) in enumerate(zip(tiles, needed, strict=True)):
        y, reuse = 36 + row * i, tm * tn / (tm + tn)
        told.append(f"{tm} × {tn}: {reuse:.3g}, {registers}")
        s.text_to(left - 12, y + 15, f"{tm} × {tn}")
        s.rect(left, y, wide * reuse / most, row - 10, "c1", rx=0)
        s.text_from(left + wide * reuse / most + 8, y + 15, f"{reuse:.3g}")
        s.rect(second, y, unit * registers, row - 10, "warn" if registers > limit else "c3", rx=0)
        s.text_from(second + unit * registers + 8, y + 15, registers)
    s.line(second + unit * limit, 30, second + unit * limit, 40 + row * len(tiles), "dash warn")
    alt = tr(
        f"Thread tiles with FMAs per word and registers: {'; '.join(told)}. A thread has at most {limit} registers.",
        f"各种线程分块里每个元素做的 FMA 数与寄存器数：{'；'.join(told)}。一个线程最多 {limit} 个寄存器。",
    )
    caption = tr(
        f"Words saved grow with the edge of the tile, registers with its area. Dashed: the {limit} that a thread may have.",
        f"分块的边长越大，读取省得越多；寄存器随面积增加。虚线：一个线程最多能用 {limit} 个。",
    )
    return figure(s, alt=alt, caption=caption)
