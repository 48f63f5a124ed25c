"""Drawings of shared memory: tiles that march along K, and what happens without the second barrier."""

from cudatut.site.drawing import Grid, Lanes, Svg, figure, tr


def tiles(n: int = 12, tile: int = 4, row: int = 1, column: int = 2, step: int = 1) -> str:
    """The tiles that the block at (row, column) of C loads, of n x n matrices; `step` is the current one."""
    cell, gap, top = 15, 34, 30
    side, steps = n * cell, n // tile
    s = Svg(3 * side + 2 * gap + 16, side + top + 56)
    lefts = [8 + i * (side + gap) for i in range(3)]
    for name, left in zip("ABC", lefts):
        s.text(left + side / 2, 18, name, "bold")
        cells = Grid(s, left, top, cell, gap=2, rx=1)
        for r in range(n):
            for q in range(n):
                at = r // tile, q // tile
                used = {"A": at[0] == row, "B": at[1] == column, "C": at == (row, column)}[name]
                current = used and (name == "C" or (at[1] if name == "A" else at[0]) == step)
                cells.box(r, q, "c2 solid" if current else "c1" if used else "c0")
    for i in range(steps):
        cls, middle = "bold" if i == step else "muted", (i + 0.5) * tile * cell
        s.text(lefts[0] + middle, top + side + 16, i, cls)
        s.text(lefts[1] - 12, top + middle + 4, i, cls)
    each = f"{tile} × {tile}"
    words = tr(
        f"step {step} of {steps}: each word of the two tiles is used {tile} times",
        f"共 {steps} 步，当前为第 {step} 步（从 0 数起）：两个分块里的每个元素都用 {tile} 次",
    )
    s.text_from(8, top + side + 44, words)
    alt = tr(
        f"A block computes a tile of {each} of C. In {steps} steps it loads the tiles of one band of A and one band of B; "
        f"tile {step} of each is in shared memory now.",
        f"一个线程块计算 C 的一个 {each} 分块，分 {steps} 步读取 A 的一条横带和 B 的一条竖带中的分块；此刻共享内存里是各自的第 {step} 块。",
    )
    caption = tr(
        f"Matrices of {n} x {n}, tiles of {each}. Light: what the block needs in all; dark: what it holds now.",
        f"矩阵 {n} × {n}，分块 {each}。浅色是线程块总共需要的数据，深色是此刻放在共享内存里的数据。",
    )
    return figure(s, alt=alt, caption=caption)


def missing_barrier(write: int = 2, read: int = 5, late: int = 4, steps: int = 2) -> str:
    """Two warps with the first barrier only. write, read: units of time for a tile; late: head start of warp 0."""
    unit, left, bar = 28, 92, 34
    # Each warp writes its part, waits for the other at the first barrier, reads, and goes on.
    spans: tuple[list[tuple[str, int, int, int]], ...] = ([], [])
    clock = [0, late]
    for step in range(steps):
        for w in (0, 1):
            spans[w].append(("write", step, clock[w], clock[w] + write))
            clock[w] += write
        arrived = max(clock)
        for w in (0, 1):
            if clock[w] < arrived:
                spans[w].append(("wait", step, clock[w], arrived))
            slow = read + (late if w else 0)  # warp 1 gets fewer turns of the scheduler
            spans[w].append(("read", step, arrived, arrived + slow))
            clock[w] = arrived + slow
    end = max(stop for warp in spans for *_, stop in warp)
    s = Svg(left + unit * end + 12, 196)
    names = {"write": tr("write", "写"), "read": tr("read", "读"), "wait": tr("wait", "等")}
    clashes = [
        (max(a[2], b[2]), min(a[3], b[3]))
        for a in spans[0]
        for b in spans[1]
        if a[0] == "write" and b[0] == "read" and a[1] > b[1] and a[2] < b[3] and b[2] < a[3]
    ]
    lanes = Lanes(s, left, 22, unit, 56, gap=(2, 56 - bar))
    for at in (x for clash in clashes for x in clash):  # the boxes go over them
        lanes.moment(at, 0, 1, "warn dash", over=8)
    for w, warp in enumerate(spans):
        lanes.named(w, 8, tr(f"warp {w}", f"线程束 {w}"), "bold")
        for kind, step, start, stop in warp:
            tint = {"write": f"c{2 + step} solid", "read": f"c{2 + step}"}
            text = names[kind] if kind == "wait" else f"{names[kind]} {step}"
            lanes.bar(w, start, stop, tint.get(kind, "hollow dash muted"), text)
    overwritten = tr("written while it is being read", "还在读，就被改写")
    for start, _ in clashes:
        s.text(lanes.when(start), 140, overwritten, "warn")
    s.arrow(left, 160, lanes.when(end), 160, "muted")
    s.text_to(lanes.when(end), 180, tr("time", "时间"), "muted")
    alt = tr(
        f"Two warps with a barrier after writing and none after reading. Warp 0 writes tile 1 while warp 1 still reads tile 0: "
        f"{len(clashes)} overlap.",
        f"两个线程束，写完有屏障，读完没有。线程束 0 在写第 1 块时，线程束 1 还在读第 0 块：重叠 {len(clashes)} 处。",
    )
    caption = tr(
        "Without the second barrier the fast warp overwrites what the slow one has not read yet.",
        "没有第二个屏障，快的线程束就会改写慢的线程束还没读完的数据。",
    )
    return figure(s, alt=alt, caption=caption)
