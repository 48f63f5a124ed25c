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


def waits(tiles: int = 4, ahead: int = 2, count: int = 90, late: int = 80, write: int = 44) -> str:
    """One block over time: when it looks back at once, and when it writes a tile `ahead` tiles later."""
    left, row = 150, 46
    turn = count + late + write
    s = Svg(left + tiles * turn + 10, 2 * row + 30)
    lanes = Lanes(s, left, 14, 1, row, gap=(0, 14), rx=4)
    lanes.named(0, 4, tr("looks back\nat once", "立刻回看"), "")
    lanes.named(1, 4, tr(f"{ahead} tiles later", f"晚 {ahead} 个分块"), "")
    at = 0
    for t in range(tiles):
        for length, cls, name in (
            (count, "c1", tr(f"count {t}", f"计数 {t}")),
            (late, "hollow dash", tr("wait", "等待")),
            (write, "c3", tr(f"w {t}", f"写 {t}")),
        ):
            lanes.bar(0, at, at + length, cls, name)
            at += length
    at = 0
    for t in range(tiles + ahead):
        if t < tiles:
            lanes.bar(1, at, at + count, "c1", tr(f"count {t}", f"计数 {t}"))
            at += count
        if t >= ahead:
            name = tr(f"w {t - ahead}", f"写 {t - ahead}")
            lanes.bar(1, at, at + write, "c3", name)
            at += write
    alt = tr(
        f"Two rows of bars. Above, a block counts a tile, waits, and writes it (w), {tiles} times. Below, it writes a tile after it has counted {ahead} more, and does not wait.",
        f"两行条形。上面：线程块对每个分块依次计数、等待、写出，共 {tiles} 次。下面：再给 {ahead} 个分块计数之后才写出一个分块，不用等待。",
    )
    caption = tr(
        f"One block and {tiles} tiles: it counts, and writes (w). The waits disappear if what precedes a tile is collected while the next {ahead} are counted. The lengths are drawn, not measured.",
        f"一个线程块、{tiles} 个分块：先计数，再写出。如果在给后面 {ahead} 个分块计数的同时收集某个分块之前的个数，等待就消失了。长度只是示意，并非实测。",
    )
    return figure(s, alt=alt, caption=caption)
