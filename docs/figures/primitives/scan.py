"""Drawings of the chapter on scans: what a scan is, the tree up and down, the words that a tile looks back at, and warps with tasks."""

from cudatut.site.drawing import Grid, Lanes, Svg, figure, tr

VALUES = (3, 1, 7, 0, 4, 1, 6, 3)


def scanned(values: tuple[int, ...], heads: tuple[int, ...] = ()) -> tuple[list[int], list[int]]:
    """The inclusive and the exclusive scan; both begin anew at heads."""
    inclusive, exclusive, total = [], [], 0
    for i, value in enumerate(values):
        total = 0 if i in heads else total
        exclusive.append(total)
        total += value
        inclusive.append(total)
    return inclusive, exclusive


def kinds(values: tuple[int, ...] = VALUES, heads: tuple[int, ...] = (0, 3, 5)) -> str:
    """An array, its inclusive and exclusive scan, and a segmented one."""
    left, cell, row = 142, 58, 50
    s = Svg(left + cell * len(values) + 10, 4 * row + 40)
    cells = Grid(s, left, 34, cell, row, gap=(10, 14), rx=4)
    cells.heads(range(len(values)))
    inclusive, exclusive = scanned(values)
    segmented, _ = scanned(values, heads)
    cells.row(0, [("c1" if i in heads else "hollow", v) for i, v in enumerate(values)])
    cells.row(1, [("c2", v) for v in inclusive])
    cells.row(2, [("c2", v) for v in exclusive])
    cells.row(3, [("c1" if i in heads else "c3", v) for i, v in enumerate(segmented)])
    names = (
        tr("elements", "元素"),
        tr("inclusive", "含自身"),
        tr("exclusive", "不含自身"),
        tr("segmented", "分段"),
    )
    for k, name in enumerate(names):
        s.text_to(left - 14, cells.center(k, 0)[1] + 5, name, "muted")
    own = [", ".join(map(str, line)) for line in (values, inclusive, exclusive, segmented)]
    alt = tr(
        f"The elements {own[0]}; their inclusive scan {own[1]}; their exclusive scan {own[2]}; and the segmented one {own[3]}.",
        f"元素 {own[0]}；含自身的前缀和 {own[1]}；不含自身的前缀和 {own[2]}；分段前缀和 {own[3]}。",
    )
    caption = tr(
        f"Scans of {len(values)} numbers. The segmented one is inclusive and begins anew at the {len(heads)} colored elements.",
        f"{len(values)} 个数的各种前缀和。分段前缀和含自身，在涂色的 {len(heads)} 个元素处重新开始。",
    )
    return figure(s, alt=alt, caption=caption)


def levels(values: tuple[int, ...] = VALUES) -> tuple[list[list[int]], list[list[int]]]:
    """The words of the tree after each step up, and after each step down; the last of these are the exclusive scan."""
    words, reach, n = list(values), 1, len(values)
    up, down = [list(words)], []
    while reach < n:
        for right in range(2 * reach - 1, n, 2 * reach):
            words[right] += words[right - reach]
        up.append(list(words))
        reach *= 2
    words[-1] = 0
    down.append(list(words))
    while reach > 1:
        reach //= 2
        for right in range(2 * reach - 1, n, 2 * reach):
            left = words[right - reach]
            words[right - reach] = words[right]
            words[right] += left
        down.append(list(words))
    return up, down


def tree(values: tuple[int, ...] = VALUES) -> str:
    """The work-efficient tree: the words of shared memory after each step."""
    up, down = levels(values)
    left, cell, row, n = 142, 58, 50, len(values)
    rows = len(up) + len(down)
    s = Svg(left + cell * n + 10, rows * row + 34)
    cells = Grid(s, left, 30, cell, row, gap=(10, 18), rx=4)
    before = list(values)
    for k, words in enumerate((*up, *down)):
        cls = "c1" if k < len(up) else "c3"
        cells.row(
            k,
            [(cls if k and words[i] != before[i] else "hollow", words[i]) for i in range(n)],
        )
        before = words
    reach = 1
    for k in range(1, len(up)):
        for right in range(2 * reach - 1, n, 2 * reach):
            x, y = cells.center(k - 1, right - reach)
            to_x, to_y = cells.center(k, right)
            s.arrow(x, y + 17, to_x - 16, to_y - 17)
        reach *= 2
    for k in range(len(up) + 1, rows):
        reach //= 2
        for right in range(2 * reach - 1, n, 2 * reach):
            for one, other in ((right - reach, right), (right, right - reach)):
                x, y = cells.center(k - 1, one)
                to_x, to_y = cells.center(k, other)
                s.arrow(x, y + 17, to_x + (-12 if other > one else 12), to_y - 17)
    names = {
        0: tr("elements", "元素"),
        1: tr("up", "向上"),
        len(up): tr("last word to 0", "末尾清零"),
        len(up) + 1: tr("down", "向下"),
    }
    for k, name in names.items():
        s.text_to(left - 14, cells.center(k, 0)[1] + 5, name, "muted")
    result = ", ".join(map(str, down[-1]))
    alt = tr(
        f"{len(up) - 1} steps up: of two neighbors the right one gets the sum of both. Then the last word becomes 0, and {len(down) - 1} steps down hand on what precedes: {result}.",
        f"向上 {len(up) - 1} 步：相邻两个字中右边的得到两者相加的结果。然后末尾清零，再向下 {len(down) - 1} 步，把前面的总和传下去：{result}。",
    )
    adds = 2 * (n - 1)
    caption = tr(
        f"The tree of {n} words: colored are those that change. {adds} additions in {2 * (len(up) - 1)} steps; one after the other, {n - 1} would do.",
        f"{n} 个字的树，涂色的是变化了的字。共 {adds} 次加法、{2 * (len(up) - 1)} 步；如果逐个相加，{n - 1} 次就够。",
    )
    return figure(s, alt=alt, caption=caption)


def window(sums: tuple[int, ...] = (5, 2, 8, 1, 4, 7, 3), prefix: int = 3, steps: int = 4) -> str:
    """What a tile finds when it looks back: sums as far as the nearest prefix, and that."""
    tiles = len(sums)
    left, cell = 20, 86
    s = Svg(left + cell * (tiles + 1) + 10, 172)
    cells = Grid(s, left, 46, cell, 58, gap=(10, 10), rx=4)
    cells.heads([tr(f"tile {t}", f"分块 {t}") for t in range(tiles + 1)])
    start = tiles - steps
    ends = [sum(sums[: t + 1]) for t in range(tiles)]
    for t in range(tiles):
        if t <= prefix:
            cells.box(
                0,
                t,
                "c3" if t == prefix else "hollow",
                tr(f"prefix\n{ends[t]}", f"前缀\n{ends[t]}"),
            )
        else:
            cells.box(0, t, "c1", tr(f"sum\n{sums[t]}", f"总和\n{sums[t]}"))
    total = ends[prefix] + sum(sums[prefix + 1 :])
    cells.box(0, tiles, "c2", tr("looks", "回看"))
    x, y = cells.corner(0, prefix)
    right = cells.corner(0, tiles)[0] - 10
    s.line(x, y + 58, right, y + 58, "accent")
    parts = " + ".join(str(v) for v in (ends[prefix], *sums[prefix + 1 :]))
    s.text((x + right) / 2, y + 84, f"{parts} = {total}", "accent")
    assert start <= prefix + 1
    alt = tr(
        f"Tile {tiles} looks back: tiles {prefix + 1} to {tiles - 1} have announced their sums, tile {prefix} its prefix. {parts} makes {total}.",
        f"分块 {tiles} 向前回看：分块 {prefix + 1} 到 {tiles - 1} 已公布总和，分块 {prefix} 已公布前缀。{parts} 等于 {total}。",
    )
    caption = tr(
        f"What precedes tile {tiles}: the nearest prefix, and the sums behind it. Words before the prefix do not count.",
        f"分块 {tiles} 之前的总和：最近的前缀，加上它后面的各个总和。前缀之前的字不再需要。",
    )
    return figure(s, alt=alt, caption=caption)


def ahead(tiles: int = 4, bring: int = 60, add: int = 30, look: int = 54, scan: int = 48) -> str:
    """The warps of a block that runs ahead: who has which tile when."""
    lengths, classes = (bring, add, look, scan), ("c4", "c1", "c2", "c3")
    bars: list[tuple[int, float, float, int]] = []
    free = [0.0] * len(lengths)
    for t in range(tiles):
        at = 0.0
        for lane, length in enumerate(lengths):
            begin = max(at, free[lane])
            at = free[lane] = begin + length
            bars.append((lane, begin, at, t))
    left, row = 150, 44
    s = Svg(left + free[-1] + 20, len(lengths) * row + 26)
    lanes = Lanes(s, left, 14, 1, row, gap=(2, 12), rx=4)
    names = (
        tr("TMA", "TMA"),
        tr("adds up", "求和"),
        tr("looks", "查看"),
        tr("scan", "做前缀和"),
    )
    for k, name in enumerate(names):
        lanes.named(k, 4, name, "")
    for lane, begin, stop, t in bars:
        lanes.bar(lane, begin, stop, classes[lane], t)
    alt = tr(
        f"{tiles} tiles pass four lanes: the TMA brings a tile, a warp adds it up, a warp looks at the sums of all blocks, the other warps scan it. Different tiles are in different lanes at the same time.",
        f"{tiles} 个分块依次经过四道：TMA 取来，一个线程束求和，一个线程束查看所有线程块的总和，其余线程束做前缀和。同一时刻各道里是不同的分块。",
    )
    caption = tr(
        f"One block and {tiles} tiles: when a tile is scanned, the sums of later ones are already on their way. (The lengths are drawn, not measured.)",
        f"一个线程块、{tiles} 个分块：对某个分块做前缀和时，后面各分块的总和已经在途中。（长度只是示意，并非实测。）",
    )
    return figure(s, alt=alt, caption=caption)
