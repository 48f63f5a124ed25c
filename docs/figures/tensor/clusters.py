"""Drawings of the last few per cent: orders of tiles, a cluster of two, and shares of what is left."""

from cudatut.site.drawing import Grid, Lanes, Svg, figure, tr


def _place(tile: int, group: int, rows: int, columns: int) -> tuple[int, int]:
    """Row and column of a tile, as order.cuh has them."""
    first = tile // (group * columns) * group
    high = min(group, rows - first)
    i = tile - first * columns
    return first + i % high, i // high


def orders(
    groups: tuple[int, ...] = (1, 8), rows: int = 32, columns: int = 32, at_once: int = 132
) -> str:
    """The tiles that are computed at the same time, by the order, and the rows and columns that they need."""
    cell, top, gap = 8, 46, 90
    s = Svg(40 + len(groups) * (columns * cell + gap), top + rows * cell + 34)
    found = []
    for g, group in enumerate(groups):
        x0 = 20 + g * (columns * cell + gap)
        now = {_place(t, group, rows, columns) for t in range(at_once)}
        high, wide = (len(set(some)) for some in zip(*now, strict=True))
        found.append((group, high, wide))
        title = tr(f"{group} downwards, then to the right", f"纵向每组 {group} 个，再往右")
        s.text_from(x0, 20, title, "bold")
        cells = Grid(s, x0, top, cell, gap=1, rx=1)
        for r in range(rows):
            cells.row(r, ["c1" if (r, c) in now else "hollow" for c in range(columns)])
        text = tr(f"{high} rows and {wide} columns of tiles", f"{high} 行与 {wide} 列分块")
        s.text_from(x0, top + rows * cell + 22, text, "muted")
    what = "; ".join(tr(f"{g} downwards: {h} rows, {w} columns", f"纵向每组 {g} 个：{h} 行、{w} 列") for g, h, w in found)  # fmt: skip
    alt = tr(f"The first {at_once} of {rows} x {columns} tiles in two orders. {what}.", f"{rows} × {columns} 个分块中按两种次序最先计算的 {at_once} 个。{what}。")  # fmt: skip
    caption = tr(
        f"The {at_once} tiles that are computed first. Each row of tiles needs its rows of A and each column its columns of B: together they "
        "should be few.",
        f"最先计算的 {at_once} 个分块。每一行分块需要 A 的对应行，每一列需要 B 的对应列：两者合起来应当尽量少。",
    )
    return figure(s, alt=alt, caption=caption)


def cluster() -> str:
    """Two blocks of a cluster: each fetches its rows of A and half of the columns of B, which go to both."""
    s = Svg(700, 258)
    for i, x in enumerate((10, 480)):
        s.rect(x, 34, 210, 216, "c3").text(x + 105, 24, tr(f"block {i}", f"线程块 {i}"), "bold")
        s.rect(x + 35, 48, 140, 44, "c1", tr(f"rows A{i}", f"行 A{i}"), rx=3)
        s.rect(x + 35, 110, 140, 44, "c2", tr("columns B0", "列 B0"), rx=3)
        s.rect(x + 35, 184, 140, 44, "c4", tr("columns B1", "列 B1"), rx=3)
    s.text(350, 24, tr("L2 cache", "L2 缓存"), "bold")
    for i, y in ((0, 110), (1, 184)):
        s.rect(300, y, 100, 44, "c2" if i == 0 else "c4", f"B{i}", rx=3)
        s.arrow(296, y + 22, 190, y + 22, "accent").arrow(404, y + 22, 510, y + 22, "accent")
        s.text(350, y + 58, tr(f"asked for by block {i}", f"由线程块 {i} 请求"), "muted", size=11)
    s.rect(290, 48, 56, 44, "c1", "A0", rx=3).arrow(286, 70, 190, 70)
    s.rect(354, 48, 56, 44, "c1", "A1", rx=3).arrow(414, 70, 510, 70)
    alt = tr(
        "Two blocks of a cluster. Block 0 fetches its rows A0 and the columns B0, block 1 its rows A1 and the columns B1; B0 and B1 arrive in "
        "both blocks.",
        "一个集群的两个线程块。线程块 0 取自己的行 A0 和列 B0，线程块 1 取自己的行 A1 和列 B1；B0 和 B1 都写进两个线程块。",
    )
    caption = tr(
        "A stage of two blocks of a cluster: each asks for its own rows of A and for one half of B, which the multicast writes into both.",
        "同一阶段里，一个集群的两个线程块各取各的 A 的行，再各取 B 的一半；B 的这一半经多播写进两个线程块。",
    )
    return figure(s, alt=alt, caption=caption)


def shares(tiles: int = 6, workers: int = 4, steps: int = 8) -> str:
    """Tiles and workers that do not come out even: whole tiles in rounds, and all steps in one row in equal shares."""
    left, top, height, width = 96, 36, 22, 250
    rounds = -(-tiles // workers)
    longest = rounds * steps
    s = Svg(left + 2 * width + 130, top + workers * (height + 8) + 40)
    share = -(-tiles * steps // workers)
    # Of each worker: begin, length and tile of its pieces.
    whole = [
        [(turn * steps, steps, tile) for turn, tile in enumerate(range(w, tiles, workers))]
        for w in range(workers)
    ]
    equal = []
    for w in range(workers):
        at, stop, pieces = w * share, min((w + 1) * share, tiles * steps), []
        while at < stop:
            length = min(steps - at % steps, stop - at)
            pieces.append((at - w * share, length, at // steps))
            at += length
        equal.append(pieces)
    below = top + workers * (height + 8) + 18
    for x0, title, worked, last in (
        (left, tr("whole tiles", "整块"), whole, longest),
        (left + width + 110, tr("equal shares", "均分"), equal, share),
    ):
        s.text_from(x0, 20, title, "bold")
        lanes = Lanes(s, x0, top, width / longest, height + 8, gap=(2, 8))
        for w, pieces in enumerate(worked):
            if x0 == left:
                lanes.named(w, 6, tr(f"worker {w}", f"工作者 {w}"), "")
            for begin, length, tile in pieces:
                lanes.bar(w, begin, begin + length, f"c{tile % 5}", tile)
        s.text_from(x0, below, tr(f"ends after {last} steps", f"{last} 步后结束"), "muted")
    alt = tr(
        f"{tiles} tiles of {steps} steps for {workers} workers. In whole tiles it takes {longest} steps, in equal shares {share}.",
        f"{workers} 个工作者算 {tiles} 个分块，每块 {steps} 步。按整块需要 {longest} 步，均分只要 {share} 步。",
    )
    caption = tr(
        f"{tiles} tiles of {steps} steps each for {workers} workers; the number is the tile. With equal shares some tiles have two parts, which "
        "are added up.",
        f"{workers} 个工作者算 {tiles} 个分块，每块 {steps} 步；数字是分块号。均分时，有些分块由两部分相加而成。",
    )
    return figure(s, alt=alt, caption=caption)
