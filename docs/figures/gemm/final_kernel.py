"""Drawings of the final kernel: tile, warp and lanes; what a step does when; registers in two banks."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr


def lane_place(lane: int) -> tuple[int, int]:
    """Row and column of a lane in its warp: 8 x 4, so that of two neighbors one shares a row or a column."""
    return lane // 2 % 8, lane % 2 + lane // 16 % 2 * 2


def tile(bm: int = 64, bn: int = 128, tm: int = 8, tn: int = 8) -> str:
    """A block's tile with its warps, and the lanes of a warp with the four patches of lane 9."""
    warps = bn // (4 * tn)
    unit, left, top = 2.3, 40, 46
    s = Svg(710, 300)
    s.text(left + bn * unit / 2, 18, tr(f"a block: {bm} x {bn}", f"一个线程块：{bm}×{bn}"), "bold")
    for warp in range(warps):
        width = bn / warps * unit
        s.rect(left + warp * width, top, width - 2, bm * unit, f"c{1 + warp}", None, rx=2)
        s.text(
            left + (warp + 0.5) * width,
            top - 8,
            tr(f"warp {warp}", f"线程束 {warp}"),
            "muted",
            size=12,
        )
    cell_x, cell_y, x0 = 32, 22, 400
    s.text(
        x0 + 4 * cell_x,
        18,
        tr(f"a warp: {8 * tm} x {4 * tn}", f"一个线程束：{8 * tm}×{4 * tn}"),
        "bold",
    )
    for part_y in range(tm // 4):
        for part_x in range(tn // 4):
            for lane in range(32):
                row, column = lane_place(lane)
                x = x0 + (part_x * 4 + column) * cell_x + part_x * 8
                y = top + (part_y * 8 + row) * (cell_y * 0.62) + part_y * 8
                shown = f"{lane}"
                cls = "c2 solid" if lane == 9 else "c0"
                s.rect(x, y, cell_x - 2, cell_y * 0.62 - 2, cls, shown, rx=0, size=11)
    alt = tr(
        f"A tile of {bm} x {bn} results, cut into {warps} warps side by side. A warp's part is cut into {tm * tn // 16} fields, "
        "in each of which every lane has a patch of 4 x 4 results.",
        f"{bm}×{bn} 个结果的分块，横向切成 {warps} 个线程束。每个线程束的部分又分成 {tm * tn // 16} 片，每个 lane 在每片里各有一个 4×4 的小块。",
    )
    caption = tr(
        f"Each small box is a patch of 4 x 4 results with the number of its lane. A lane has {tm * tn // 16} patches, a field apart "
        "(lane 9 is marked), so that the lanes of a row or column read consecutive words.",
        f"每个小格是一个 4×4 的结果块，格里是 lane 的编号。一个 lane 有 {tm * tn // 16} 块，彼此隔开一整片（标出的是 lane 9），这样同一行或同一列的各 lane 读的字是连续的。",
    )
    return figure(s, alt=alt, caption=caption)


def step(bk: int = 16, stages: int = 3) -> str:
    """What happens at which of the BK depths of a step."""
    left, cell, row, top = 150, 32, 34, 30
    s = Svg(left + bk * cell + 20, top + 4 * row + 30)
    lanes = (
        (tr("multiply depth", "做乘法的深度"), range(bk), "c0"),
        (tr("read depth + 1", "读下一个深度"), range(bk), "c3"),
        (tr("copy ahead", "提前复制"), (2, bk // 2), "c2"),
        (tr("wait, barrier", "等待与栅栏"), (bk - 1,), "c5"),
    )
    for number, (name, places, cls) in enumerate(lanes):
        y = top + number * row
        s.text(left - 10, y + 18, name, "", "end", 13)
        for kk in range(bk):
            if kk in places:
                text = (
                    {2: "A", bk // 2: "B"}[kk]
                    if number == 2
                    else kk
                    if number == 0
                    else (kk + 1) % bk
                    if number == 1
                    else None
                )
                s.rect(left + kk * cell, y, cell - 3, row - 8, cls, text, rx=0, size=12)
            else:
                s.rect(left + kk * cell, y, cell - 3, row - 8, "hollow muted", None, rx=0)
    s.text(left, 16, "kk = 0", "muted", "start", 12)
    s.text(left + bk * cell - 3, 16, f"kk = {bk - 1}", "muted", "end", 12)
    alt = tr(
        f"A step of {bk} depths. In each, the next depth is read and this one multiplied. Copies of A start at depth 2, those of B at "
        f"{bk // 2}; at {bk - 1} the block waits for the next tile.",
        f"一步 {bk} 个深度。每个深度都一边读下一个深度，一边做这个深度的乘法。A 的复制从深度 2 开始，B 的从 {bk // 2} 开始；到 {bk - 1} 等下一个分块。",
    )
    caption = tr(
        f"One turn of the main loop. The copies bring the tile that is {stages - 1} steps ahead, A and B half a step apart. Behind the "
        "barrier the last depth reads the first of the next tile.",
        f"主循环的一圈。复制取的是 {stages - 1} 步之后的分块，A 与 B 错开半步。越过栅栏之后，最后一个深度去读下一个分块的第一个深度。",
    )
    return figure(s, alt=alt, caption=caption)


def banks(tm: int = 8) -> str:
    """The two operands that an FMA fetches, with sums at i and at i ^ 1."""
    cell, left, row = 62, 132, 40
    s = Svg(left + tm * cell + 20, 2 * (4 * row) + 6)
    for panel, flip in enumerate((0, 1)):
        y = panel * 4 * row + 22
        s.text(
            0,
            y,
            tr("sum of row i at i", "第 i 行的和放在 i")
            if not flip
            else tr("sum of row i at i ^ 1", "第 i 行的和放在 i ^ 1"),
            "bold",
            "start",
        )
        for line, name in ((0, "a[i]"), (1, tr("sum", "累加和"))):
            s.text(left - 10, y + 12 + line * row + 20, name, "mono", "end", 13)
        for i in range(tm):
            at = i ^ flip
            s.rect(
                left + i * cell,
                y + 12,
                cell - 8,
                28,
                "c1" if i % 2 == 0 else "c3",
                f"R{24 + i}",
                rx=0,
                size=13,
            )
            s.rect(
                left + i * cell,
                y + 12 + row,
                cell - 8,
                28,
                "c1" if at % 2 == 0 else "c3",
                f"R{64 + at}",
                rx=0,
                size=13,
            )
            same = i % 2 == at % 2
            s.text(
                left + i * cell + (cell - 8) / 2,
                y + 12 + 2 * row + 14,
                tr("one bank", "同一个") if same else tr("two banks", "两个"),
                "warn" if same else "good",
                size=12,
            )
    alt = tr(
        "With sums at i every FMA fetches a factor and a sum from the same bank; with sums at i ^ 1 always one from each.",
        "和放在 i 时，每条 FMA 的因子与和都在同一个存储体；放在 i ^ 1 时，总是一边一个。",
    )
    caption = tr(
        "Registers that the FMAs of one column fetch (b[j] is kept by `.reuse`): one color for even ones, one for odd ones. The numbers are an example.",
        "一列里各条 FMA 要取的寄存器（b[j] 由 `.reuse` 留着）：偶数号一种颜色，奇数号另一种。编号只是举例。",
    )
    return figure(s, alt=alt, caption=caption)
