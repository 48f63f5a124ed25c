"""Drawings of the chapter on idle threads: who adds in which step, and what too small a grid leaves out."""

from cudatut.site.drawing import Grid, Svg, figure, hue, tr


def additions(block: int, per_thread: int) -> list[list[bool]]:
    """For each step after the load, the one within it first: which threads of a full block add something."""
    steps = [[True] * block for _ in range(per_thread - 1)]
    half = block // 2
    while half > 0:
        steps.append([t < half for t in range(block)])
        half //= 2
    return steps


def before_after(block: int = 8) -> str:
    """The threads of one block, step by step, with one and with two elements per thread."""
    size, left, top, gap = 34, 104, 52, 40
    panel = size * block
    rounds = len(additions(block, 1))
    s = Svg(left + 2 * panel + gap, top + size * (rounds + 1) + 46)
    totals = []
    for number, per_thread in enumerate((1, 2)):
        x0 = left + number * (panel + gap)
        steps = additions(block, per_thread)
        busy = sum(map(sum, steps))
        totals.append(busy)
        title = tr(f"{per_thread * block} elements", f"{per_thread * block} 个元素")
        title = tr(f"{per_thread * block} elements", f"{per_thread * block} 个元素")
        s.text(x0 + panel / 2, 20, title, "bold")
        cells = Grid(s, x0, top, size, rx=3).heads(range(block))
        load = ("c1", "+") if per_thread > 1 else "c2"
        cells.row(0, [load] * block)
        for row, adds in enumerate(steps[per_thread - 1 :], start=1):
            cells.row(row, [("c1", "+") if add else "hollow dash muted" for add in adds])
        note = tr(f"{busy} additions", f"{busy} 次加法")
        s.text(x0 + panel / 2, top + size * (rounds + 1) + 22, note, "accent")
    s.text_to(left - 12, 42, tr("thread", "线程"), "muted")
    names = Grid(s, left, top, size).name(0, tr("load", "读取"), "", away=12)
    for r in range(rounds):
        names.name(r + 1, f"half = {block >> (r + 1)}", "mono", 13, away=12)
    one, two = totals
    alt = tr(
        f"Two tables of {block} threads and {rounds + 1} steps. With one element per thread nobody adds while loading, and the "
        f"tree makes {one} additions. With two, every thread adds once while loading: {two} additions. The tree below is the same.",
        f"两张表，{block} 个线程、{rounds + 1} 步。每个线程一个元素时，读取时不做加法，整棵树做 {one} 次加法；"
        f"每个线程两个元素时，每个线程在读取时先加一次，共 {two} 次。下面的树完全一样。",
    )
    caption = tr(
        f"A block of {block}: a thread with + adds, a dashed one waits. The tree is no different; it serves twice as many elements.",
        f"{block} 个线程的线程块：带 + 的线程在做加法，虚线框的在等。树没有任何变化，只是一棵树处理了两倍的元素。",
    )
    return figure(s, alt=alt, caption=caption)


def tail(n: int = 20, block: int = 4) -> str:
    """n elements under two grids: (n + block - 1) // (2 * block) blocks, and rounded up properly."""
    cell, left, height = min(33, 660 // n), 20, 32
    s = Svg(left * 2 + cell * n, 176)
    grids = (
        (tr("(n + bs - 1) / (2 * bs)", "(n + bs - 1) / (2 * bs)"), (n + block - 1) // (2 * block)),
        (tr("(n + 2 * bs - 1) / (2 * bs)", "(n + 2 * bs - 1) / (2 * bs)"), -(-n // (2 * block))),
    )
    lost = max(0, n - 2 * block * grids[0][1])
    for row, (formula, blocks) in enumerate(grids):
        y = 34 + 82 * row
        s.text_from(left, y - 12, f"{formula} = {blocks}", "mono")
        owners = [i // (2 * block) for i in range(n)]
        kinds = [hue(owner) if owner < blocks else "hollow dash warn" for owner in owners]
        Grid(s, left, y, cell, height + 3, rx=3).row(0, zip(kinds, range(n)))
    alt = tr(
        f"{n} elements, blocks of {block} threads with two elements each. The first formula starts {grids[0][1]} blocks and "
        f"leaves the last {lost} elements out; the second starts {grids[1][1]} and covers all.",
        f"{n} 个元素，每块 {block} 个线程、每个线程两个元素。第一个公式只启动 {grids[0][1]} 个线程块，漏掉最后 {lost} 个元素；"
        f"第二个启动 {grids[1][1]} 个，全部覆盖。",
    )
    caption = tr(
        f"n = {n}, bs = {block}; a color is a block. To round up a division by 2 · bs, add 2 · bs - 1.",
        f"n = {n}，bs = {block}；每种颜色是一个线程块。除数是 2 · bs，要向上取整就得加 2 · bs - 1。",
    )
    return figure(s, alt=alt, caption=caption)
