"""Drawings of the final kernel: tile, warp and lanes; what a step does when; registers in two banks."""

from cudatut.site.drawing import Grid, Kind, Svg, figure, tr


def lane_place(lane: int) -> tuple[int, int]:
    """Row and column of a lane in its warp: 8 x 4, so that of two neighbors one shares a row or a column."""
    return lane // 2 % 8, lane % 2 + lane // 16 % 2 * 2


def tile(bm: int = 64, bn: int = 128, tm: int = 8, tn: int = 8) -> str:
    """A block's tile with its warps, and the lanes of a warp with the four patches of lane 9."""
    warps = bn // (4 * tn)
    unit, left, top = 2.3, 40, 46
    s = Svg(710, 300)
    s.text(left + bn * unit / 2, 18, tr(f"a block: {bm} x {bn}", f"一个线程块：{bm}×{bn}"), "bold")
    parts = Grid(s, left, top, bn / warps * unit, bm * unit, gap=(2, 0), size=12)
    parts.row(0, [f"c{1 + warp}" for warp in range(warps)])
    parts.heads((tr(f"warp {warp}", f"线程束 {warp}") for warp in range(warps)), up=8)
    wide, high, x0 = 32, 13.64, 400
    title = tr(f"a warp: {8 * tm} x {4 * tn}", f"一个线程束：{8 * tm}×{4 * tn}")
    s.text(x0 + 4 * wide, 18, title, "bold")
    for down in range(tm // 4):
        for right in range(tn // 4):
            x, y = x0 + right * (4 * wide + 8), top + down * (8 * high + 8)
            field = Grid(s, x, y, wide, high, gap=2, rx=0, size=11)
            for lane in range(32):
                field.box(*lane_place(lane), "c2 solid" if lane == 9 else "c0", lane)
    alt = tr(
        f"A tile of {bm} x {bn} results, cut into {warps} warps side by side. A warp's part is cut into {tm * tn // 16} fields, "
        "in each of which every lane has a patch of 4 x 4 results.",
        f"{bm}×{bn} 个结果的分块，横向切成 {warps} 个线程束。每个线程束的部分又分成 {tm * tn // 16} 片，每个 lane 在每片里各有一个 4×4 的小块。",
    )
    caption = tr(
        f"Each small box is a patch of 4 x 4 results with the number of its lane. A lane has {tm * tn // 16} patches, a field apart "
        "(lane 9 is marked), so that the lanes of a row or column read consecutive words.",
        f"每个小格是一个 4×4 的结果块，格里是 lane 的编号。一个 lane 有 {tm * tn // 16} 块，彼此隔开一整片（标出的是 lane 9），这样同一行或同一列的各 lane 读的元素是连续的。",
    )
    return figure(s, alt=alt, caption=caption)


def step(bk: int = 16, stages: int = 3) -> str:
    """What happens at which of the BK depths of a step."""
    left, cell, row, top = 150, 32, 34, 30
    s = Svg(left + bk * cell + 20, top + 4 * row + 30)
    a, b = 2, bk // 2  # where the copies of A and of B begin
    depths, none = range(bk), ("hollow muted", None)
    lanes: tuple[tuple[str, list[Kind]], ...] = (
        (tr("multiply depth", "做乘法的 k"), [("c0", kk) for kk in depths]),
        (tr("read depth + 1", "读下一个 k"), [("c3", (kk + 1) % bk) for kk in depths]),
        (
            tr("copy ahead", "提前复制"),
            [{a: ("c2", "A"), b: ("c2", "B")}.get(kk, none) for kk in depths],
        ),
        (tr("wait, barrier", "等待与屏障"), [*[none] * (bk - 1), ("c5", None)]),
    )
    cells = Grid(s, left, top, cell, row, gap=(3, 8), rx=0, size=12)
    for number, (name, kinds) in enumerate(lanes):
        cells.name(number, name, "", 13).row(number, kinds)
    s.text_from(left, 16, "kk = 0", "muted", 12)
    s.text_to(left + bk * cell - 3, 16, f"kk = {bk - 1}", "muted", 12)
    alt = tr(
        f"A step of {bk} depths. In each, the next depth is read and this one multiplied. Copies of A start at depth 2, those of B at "
        f"{bk // 2}; at {bk - 1} the block waits for the next tile.",
        f"一步有 {bk} 个 k。每个 k 都一边读下一个 k 的操作数，一边做这个 k 的乘法。A 的复制从 k = 2 开始，B 的从 {bk // 2} 开始；到 {bk - 1} 等下一个分块。",
    )
    caption = tr(
        f"One turn of the main loop. The copies bring the tile that is {stages - 1} steps ahead, A and B half a step apart. Behind the "
        "barrier the last depth reads the first of the next tile.",
        f"主循环的一圈。复制取的是 {stages - 1} 步之后的分块，A 与 B 错开半步。过了屏障，做最后一个 k 的乘法时，读的是下一个分块的第一个 k。",
    )
    return figure(s, alt=alt, caption=caption)


def banks(tm: int = 8) -> str:
    """The two operands that an FMA fetches, with sums at i and at i ^ 1."""
    cell, left, row = 62, 132, 40
    s = Svg(left + tm * cell + 20, 2 * (4 * row) + 6)
    for panel, flip in enumerate((0, 1)):
        y = panel * 4 * row + 22
        at = "i ^ 1" if flip else "i"
        s.text_from(0, y, tr(f"sum of row i at {at}", f"第 i 行的累加值放在 {at}"), "bold")
        cells = Grid(s, left, y + 12, cell, row, gap=(8, 12), rx=0, size=13)
        cells.name(0, "a[i]", "mono").name(1, tr("sum", "累加值"), "mono")
        for line, first, places in (
            (0, 24, range(tm)),
            (1, 64, [i ^ flip for i in range(tm)]),
        ):
            cells.row(line, [("c3" if i % 2 else "c1", f"R{first + i}") for i in places])
        fetched = tr("two banks", "两个") if flip else tr("one bank", "同一个")
        cells.heads([fetched] * tm, "good" if flip else "warn", 12, up=-14, row=2)
    alt = tr(
        "With sums at i every FMA fetches a factor and a sum from the same bank; with sums at i ^ 1 always one from each.",
        "累加值放在 i 时，每条 FMA 的操作数与累加值都在同一个存储体；放在 i ^ 1 时，总是一边一个。",
    )
    caption = tr(
        "Registers that the FMAs of one column fetch (b[j] is kept by `.reuse`): one color for even ones, one for odd ones. The numbers are an example.",
        "一列里各条 FMA 要取的寄存器（b[j] 由 `.reuse` 留着）：偶数号一种颜色，奇数号另一种。编号只是举例。",
    )
    return figure(s, alt=alt, caption=caption)
