"""Drawings of the chapter on compaction: from elements to places, counts of four rows in one word, and who waits for whom."""

from cudatut.site.drawing import Grid, Lanes, Svg, figure, tr

VALUES = (3, -1, 4, -1, 5, -9, -2, 6)


def places(values: tuple[int, ...] = VALUES, partition: bool = False) -> str:
    """Each element, whether it stays, how many before it stay, and where it goes."""
    kept = [value > 0 for value in values]
    before = [sum(kept[:i]) for i in range(len(values))]
    total, n = sum(kept), len(values)
    goes = [before[i] if kept[i] else n - 1 - (i - before[i]) for i in range(n)]
    left, cell, row = 132, 58, 50
    s = Svg(left + cell * n + 10, 4 * row + 78)
    cells = Grid(s, left, 34, cell, row, gap=(10, 14), rx=4)
    cells.heads(range(n))
    names = (
        tr("elements", "元素"),
        tr("stays", "是否保留"),
        tr("stay before", "前面保留几个"),
    )
    cells.row(0, [("c1" if kept[i] else "hollow", values[i]) for i in range(n)])
    cells.row(1, [("c2" if one else "hollow", int(one)) for one in kept])
    cells.row(2, [("c3" if kept[i] else "hollow", before[i]) for i in range(n)])
    out = Grid(s, left, 34 + 3 * row + 34, cell, row, gap=(10, 14), rx=4)
    for i in range(n):
        if kept[i] or partition:
            x, y = cells.center(2, i)
            to_x, to_y = out.center(0, goes[i])
            s.arrow(x, y + 20, to_x, to_y - 20)
    shown = {goes[i]: i for i in range(n) if kept[i] or partition}
    for place in range(n):
        if place in shown:
            i = shown[place]
            out.box(0, place, "c1" if kept[i] else "hollow", values[i])
        else:
            out.box(0, place, "hollow dash")
    for k, name in enumerate(names):
        s.text_to(left - 14, cells.center(k, 0)[1] + 5, name, "muted")
    s.text_to(left - 14, out.center(0, 0)[1] + 5, tr("output", "输出"), "muted")
    listed = ", ".join(map(str, values))
    result = ", ".join(str(values[shown[p]]) for p in sorted(shown))
    alt = tr(
        f"Of the elements {listed} those above 0 stay. Below each stands a 1 or a 0, then the number of ones before it: its place in the output, which is {result}.",
        f"元素 {listed} 中大于 0 的保留。每个元素下面先写 1 或 0，再写它前面有几个 1，这就是它在输出里的位置；输出是 {result}。",
    )
    caption = tr(
        f"{total} of {n} elements stay. The place of an element is the exclusive scan of the ones and zeros.",
        f"{n} 个元素保留 {total} 个。元素的位置就是这些 1 和 0 的不含自身的前缀和。",
    )
    if partition:
        caption = tr(
            f"A partition: the {n - total} others fill the output from its end, so that nobody has to know how many stay.",
            f"划分：其余 {n - total} 个从输出的末尾往前放，因此不必事先知道保留几个。",
        )
    return figure(s, alt=alt, caption=caption)


def waits(tiles: int = 3, read: int = 60, work: int = 60, late: int = 90) -> str:
    """One block over time: what it waits for when it looks back at once, and when it does so a tile later."""
    write = 44
    left, row = 150, 46
    turn = read + work + late + write
    ahead = read + work + write
    s = Svg(left + tiles * turn + 20, 2 * row + 52)
    lanes = Lanes(s, left, 14, 1, row, gap=(0, 14), rx=4)
    lanes.named(0, 4, tr("looks back\nat once", "立刻回看"), "")
    lanes.named(1, 4, tr("a tile later", "晚一个分块"), "")
    at = 0
    for t in range(tiles):
        for length, cls, name in (
            (read + work, "c1", tr(f"count {t}", f"计数 {t}")),
            (late, "hollow dash", tr("wait", "等待")),
            (write, "c3", tr(f"write {t}", f"写 {t}")),
        ):
            lanes.bar(0, at, at + length, cls, name)
            at += length
    at = 0
    for t in range(tiles + 1):
        if t < tiles:
            lanes.bar(1, at, at + read + work, "c1", tr(f"count {t}", f"计数 {t}"))
            at += read + work
        if t:
            lanes.bar(1, at, at + write, "c3", tr(f"write {t - 1}", f"写 {t - 1}"))
            at += write
    alt = tr(
        f"Two rows of bars. Above, a block counts a tile, waits, and writes it, {tiles} times. Below it counts the next tile before it writes the last one, and does not wait.",
        f"两行条形。上面：线程块对每个分块依次计数、等待、写出，共 {tiles} 次。下面：先为下一个分块计数，再写上一个分块，不用等待。",
    )
    saved = tiles * turn - tiles * ahead
    caption = tr(
        f"One block and {tiles} tiles. A wait of {late} in each tile disappears if what precedes a tile is asked for while the next one is counted ({saved} of {tiles * turn} here; the lengths are drawn, not measured).",
        f"一个线程块、{tiles} 个分块。如果在为下一个分块计数的同时去问前一个分块之前有多少个，每个分块 {late} 的等待就消失了（图中 {tiles * turn} 里省下 {saved}；长度只是示意，并非实测）。",
    )
    return figure(s, alt=alt, caption=caption)
