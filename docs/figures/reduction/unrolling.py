"""Drawings of the chapter on unrolling: who waits for whom, and which words a step reads and writes."""

from cudatut.site.drawing import Grid, Kind, Svg, figure, tr

WARP = 32


def _tree(s: Svg, y: float, block: int, last_warp_alone: bool, left: float, step: float) -> int:
    """Warps as rows, the steps of the tree as columns. Returns the number of barriers of the whole block."""
    warps, height = block // WARP, 15
    bottom = y + height * warps
    s.text_to(left - 12, y + height * warps / 2 + 5, tr("warps", "线程束"), "muted")
    boxes = Grid(s, left + 4, y, step, height, gap=(12, 3))
    for w in range(warps):
        boxes.box(w, 0, "c2")
    halves = [block >> k for k in range(1, block.bit_length())]
    barriers = 0
    for column, half in enumerate([block, *halves]):
        alone = last_warp_alone and half < WARP
        for w in range(warps if column else 0):
            if w * WARP < half or not alone:
                boxes.box(w, column, "c1" if w * WARP < half else "hollow dash muted")
        x = left + step * (column + 1) - 4
        end, cls = (y + height, "accent dash") if alone else (bottom + 2, "warn")
        s.line(x, y - 4, x, end, cls)
        barriers += not alone
        said = half if column else tr("load", "读取")
        s.text(x - step / 2, bottom + 18, said, "muted", size=13)
    return barriers


def barriers(block: int = 256) -> str:
    """The steps of rung 4 and of rung 5 in one block: bars are warps at work, lines are barriers."""
    steps = block.bit_length()  # the load, and log2(block) rounds
    left, width = 76, 700
    step = (width - left - 10) / steps
    rows = 15 * block // WARP
    s = Svg(width, 2 * rows + 136)
    s.text_from(
        left, 18, tr("a loop, and a barrier after each round", "循环，每轮之后一次屏障"), "bold"
    )
    before = _tree(s, 34, block, False, left, step)
    y = rows + 98
    s.text_from(left, y - 16, tr("the last warp alone", "最后一个线程束单独处理"), "bold")
    after = _tree(s, y, block, True, left, step)
    alt = tr(
        f"Two timelines of a block of {block // WARP} warps. In the first all warps meet at {before} barriers, though only one "
        f"of them has something to add after the second round. In the second they meet at {after}; from half = 16 on one warp works alone, "
        "and only its own lanes wait for each other.",
        f"一个线程块 {block // WARP} 个线程束的两条时间线。第一条里，所有线程束要在屏障处会合 {before} 次，而两轮之后只有一个线程束还有加法可做；"
        f"第二条里只会合 {after} 次，从 half = 16 起只剩一个线程束，只有这个线程束的 32 个 lane 互相等待。",
    )
    caption = tr(
        f"Block of {block}; the number below is `half`. Full lines: `__syncthreads()`, {before} and {after} of them; dashed: `__syncwarp()`. "
        "Dashed boxes: warps that come only to wait.",
        f"{block} 个线程的线程块，下面的数是 `half`。实线是 `__syncthreads()`，分别是 {before} 次和 {after} 次；短虚线是 `__syncwarp()`。"
        "虚线框里的线程束没有加法可做，只是在等。",
    )
    return figure(s, alt=alt, caption=caption)


def overlap(lanes: int = 8, half: int = 4) -> str:
    """Words that a step of the last warp reads and writes: all lanes at work, and only the lower ones."""
    words, cell, left = lanes + half, 42, 150
    s = Svg(left + cell * words + 10, 250)
    titles = (
        tr("all lanes: sums[t] += sums[t + half]", "所有 lane：sums[t] += sums[t + half]"),
        "if (t < half) sums[t] += sums[t + half]",
    )
    shared = []
    for number, active in enumerate((lanes, half)):
        y = 36 + 122 * number
        read = {t + half for t in range(active)}  # beside its own word, which no one else touches
        written = set(range(active))
        both = read & written
        shared.append(len(both))
        s.text_from(10, y - 14, titles[number], "mono")
        cells = Grid(s, left, y, cell, 36, gap=(4, 6), rx=3)
        names = (tr("read by a neighbor", "别的 lane 读"), read), (tr("written", "写入"), written)
        for row, (name, touched) in enumerate(names):
            cells.name(row, name, away=12)
            kinds: list[Kind] = ["hollow dash muted"] * words
            for w in touched:
                kinds[w] = ("warn" if w in both else "c1", w)
            cells.row(row, kinds)
    alt = tr(
        f"Words of shared memory in one step with half = {half} and a warp of {lanes} lanes. With all lanes at work {shared[0]} words are "
        f"both read by one lane and written by another; with the lower {half} lanes alone, {shared[1]}.",
        f"half = {half} 的一步，线程束按 {lanes} 个 lane 画。所有 lane 都参与时，有 {shared[0]} 个元素既有 lane 读、又有别的 lane 写；"
        f"只让前 {half} 个 lane 参与时，这样的元素有 {shared[1]} 个。",
    )
    caption = tr(
        f"One step, half = {half}, a warp drawn with {lanes} lanes. A word in both rows needs an order between its reader and its writer.",
        f"一步之内，half = {half}，线程束按 {lanes} 个 lane 画。同时出现在两行里的元素，读和写必须分出先后。",
    )
    return figure(s, alt=alt, caption=caption)
