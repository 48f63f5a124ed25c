"""Drawings of the second rung: the same tree with other threads at work, and which warps have any work."""

from figures.reduction.naive import draw_tree, height, rounds, width

from cudatut.site.drawing import Grid, Svg, figure, tr


def trees(block: int = 16, warp: int = 4) -> str:
    """The trees of rungs 1 and 2 one above the other; a color is a warp (drawn with `warp` lanes)."""
    tall = height("naive", block)
    s = Svg(max(width(block), 460), 2 * (tall + 62))
    titles = (
        ("naive", tr("modulo: t % (2 * step) == 0", "取模：t % (2 * step) == 0")),
        ("interleaved", tr("strided index: left = 2 * step * t", "跨步索引：left = 2 * step * t")),
    )
    counts = []
    for panel, (mapping, title) in enumerate(titles):
        y = panel * (tall + 62)
        s.text(4, y + 18, title, "bold", "start")
        draw_tree(s, y + 50, mapping, block, warp)
        counts.append(
            [len({t // warp for t, _, _ in pairs}) for _, pairs in rounds(mapping, block)]
        )
    shown = [", ".join(map(str, count)) for count in counts]
    alt = tr(
        f"Two trees over the same {block} words with the same pairs. By modulo {shown[0]} of {block // warp} warps work "
        f"in the rounds, by strided index {shown[1]}.",
        f"两棵树的 {block} 个元素和配对都相同。取模时，各轮在工作的线程束有 {shown[0]} 个（共 {block // warp} 个）；跨步索引时有 {shown[1]} 个。",
    )
    caption = tr(
        f"The same pairs, the same values, other threads. Warps are drawn with {warp} lanes, one color each: "
        f"{shown[0]} warps with work above, {shown[1]} below.",
        f"配对相同，数值相同，做加法的线程不同。图中每个线程束只画 {warp} 个 lane，每种颜色表示一个线程束：上图各轮有 {shown[0]} 个线程束在工作，下图 {shown[1]} 个。",
    )
    return figure(s, alt=alt, caption=caption)


def working(block: int = 256, warp: int = 32) -> str:
    """How many lanes of each warp add in each round, for rungs 1 and 2."""
    warps, cell, left, row = block // warp, 31, 66, 32
    count = len(rounds("naive", block))
    panel = warps * cell + 24
    s = Svg(left + 2 * panel, 56 + row * count)
    totals = []
    for side, (mapping, title) in enumerate(
        (("naive", tr("modulo", "取模")), ("interleaved", tr("strided index", "跨步索引")))
    ):
        x0, total = left + side * panel, 0
        s.text(x0 + warps * cell / 2, 18, title, "bold")
        cells = Grid(s, x0, 50, cell, row, gap=(3, 4), rx=3)
        cells.heads((f"W{w}" for w in range(warps)), up=8)
        for r, (distance, pairs) in enumerate(rounds(mapping, block)):
            if side == 0:
                cells.name(r, distance)
            working = [sum(t // warp == w for t, _, _ in pairs) for w in range(warps)]
            total += warps - working.count(0)
            for w, lanes in enumerate(working):
                cls = "hollow dash muted" if not lanes else "c1" if lanes == warp else "c2"
                cells.box(r, w, cls, lanes or None)
        totals.append(total)
    s.text(4, 42, tr("distance", "距离"), "muted", "start")
    alt = tr(
        f"Lanes at work per warp and round for a block of {block}. By modulo {totals[0]} of {warps * count} boxes have "
        f"work, mostly few lanes; by strided index {totals[1]}.",
        f"{block} 线程的线程块里，每轮每个线程束有几个 lane 在工作。取模时 {warps * count} 格中有 {totals[0]} 格有 lane 在工作，多半只有几个；跨步索引时有 {totals[1]} 格。",
    )
    caption = tr(
        f"Lanes that add, per warp (column) and round (row). Green: all {warp}; orange: some; dashed: none. "
        f"{totals[0]} boxes with work on the left, {totals[1]} on the right.",
        f"每个线程束（列）每一轮（行）里做加法的 lane 数。绿：{warp} 个都做；橙：只有一部分做；虚线：都不做。左边有 {totals[0]} 格做加法，右边有 {totals[1]} 格。",
    )
    return figure(s, alt=alt, caption=caption)
