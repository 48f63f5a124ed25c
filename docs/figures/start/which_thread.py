"""Drawings of which thread am I: who takes which element, a block cut into warps, pixel against thread."""

from cudatut.site.drawing import Grid, Svg, bracket, figure, hue, legend, tr


def numbering(n: int = 10, threads: int = 4) -> str:
    """One thread walks through n boxes; below, blocks of `threads` threads take one box each."""
    cell, left, top = 54, 14, 40
    blocks = -(-n // threads)
    slots = blocks * threads
    s = Svg(left * 2 + slots * cell, 262)
    title = tr("One thread, one box after the other", "一个线程，逐个处理")
    s.text_from(left, 22, title, "bold")
    Grid(s, left, top, cell, 39, gap=5, rx=4).row(0, [("c1", i) for i in range(n)])
    s.arrow(left, top + 48, left + n * cell - 5, top + 48, "accent")
    y = 136
    title = tr(
        f"{slots} threads in {blocks} blocks, one box each",
        f"{blocks} 个线程块，共 {slots} 个线程，各处理一个",
    )
    s.text_from(left, y - 16, title, "bold")
    boxes = Grid(s, left, y, cell, 39, gap=5, rx=4)
    for i in range(slots):
        x, color, inside = boxes.center(0, i)[0], hue(i // threads), i < n
        boxes.row(0, [(color, i) if inside else "hollow dash muted"], first=i)
        s.arrow(x, y + 62, x, y + 36, "" if inside else "dash muted")
        s.circle(x, y + 76, 13, color, i % threads, size=13)
    for b in range(blocks):
        x = left + b * threads * cell
        name = tr(f"block {b}", f"{b} 号线程块")
        bracket(s, x, x + threads * cell - 6, y + 92, name)
    alt = tr(
        f"Above, one thread walks through {n} boxes. Below, {blocks} blocks of {threads} threads: each thread has a "
        f"box of its own, and the last {slots - n} threads have none.",
        f"上面，一个线程依次处理 {n} 个格子。下面，{blocks} 个线程块，每块 {threads} 个线程：每个线程负责一个格子，最后 {slots - n} 个线程没有格子。",
    )
    caption = tr(
        f"Circles are threads, with their number in the block. Boxes are the {n} elements.",
        f"圆圈是线程，圈里的数是线程在线程块里的编号；方格是 {n} 个元素。",
    )
    return figure(s, alt=alt, caption=caption)


def warps_of_block(bx: int = 12, by: int = 5, warp: int = 32) -> str:
    """A block of bx x by threads; each cell shows the lane, its color the warp."""
    cell, left, top = 46, 116, 58
    threads = bx * by
    count, idle = -(-threads // warp), -threads % warp
    s = Svg(left + cell * bx + 12, top + 38 * by + 44)
    s.text(left + cell * bx / 2, 18, "threadIdx.x", "mono")
    s.text_from(12, top - 10, "threadIdx.y", "mono")
    cells = Grid(s, left, top, cell, 38, gap=4, rx=4).heads(range(bx))
    for y in range(by):
        cells.name(y, y)
        cells.row(y, [(hue(i // warp), i % warp) for i in range(y * bx, (y + 1) * bx)])
    entries = []
    for number in range(count):
        first, last = warp * number, min(threads, warp * (number + 1)) - 1
        words = (
            f"warp {number}: threads {first} to {last}",
            f"线程束 {number}：线程 {first} 至 {last}",
        )
        entries.append((hue(number), tr(*words)))
    legend(s, left, top + 38 * by + 10, entries, step=240, wide=20, high=20)
    alt = tr(
        f"A block of {bx} by {by} threads, numbered row by row, is cut into {count} warps of {warp}; "
        f"the end of a row makes no difference. The last warp lacks {idle} threads.",
        f"一个 {bx} × {by} 的线程块，按行编号，分成 {count} 个线程束，每个 {warp} 个线程，不考虑一行在哪里结束。最后一个线程束缺 {idle} 个线程。",
    )
    caption = tr(
        f"`block=({bx}, {by})`: {threads} threads, the number in a cell is the lane. "
        f"Warp {count - 1} has {warp - idle} threads and {idle} empty lanes.",
        f"`block=({bx}, {by})`：{threads} 个线程，格子里的数字是 lane 编号。线程束 {count - 1} 只有 {warp - idle} 个线程，空着 {idle} 个 lane。",
    )
    return figure(s, alt=alt, caption=caption)


def pixel_and_thread(gx: int = 2, gy: int = 2, bx: int = 4, by: int = 2) -> str:
    """The same threads numbered twice: row by row through the picture, and block by block."""
    cell, gap, top = 40, 36, 34
    width, height = gx * bx, gy * by
    panel = width * cell
    s = Svg(2 * panel + gap + 8, top + height * 36 + 8)
    differ = 0
    titles = (tr("pixel index", "像素下标"), tr("linear thread id", "线程编号"))
    for side, title in enumerate(titles):
        cells = Grid(s, 4 + side * (panel + gap), top, cell, 36, rx=3)
        s.text(cells.x + panel / 2, 20, title, "bold")
        for y in range(height):
            for x in range(width):
                block = y // by * gx + x // bx
                pixel = y * width + x
                linear = block * bx * by + y % by * bx + x % bx
                differ += side and pixel != linear
                cls = hue(block) if pixel != linear or not side else "c0"
                cells.box(y, x, cls, linear if side else pixel)
    alt = tr(
        f"Two tables of {width} by {height} threads in {gx} by {gy} blocks of {bx} by {by}. Left: numbers run along "
        f"the rows of the picture. Right: they run through one block after the other. {differ} of {width * height} differ.",
        f"两张 {width} × {height} 的表，同样的线程分成 {gx} × {gy} 个线程块，每块 {bx} × {by}。左：像素下标，沿图像逐行编号；右：线程编号，编完一个线程块再编下一个。{width * height} 个线程里，有 {differ} 个的两个数不相等。",
    )
    caption = tr(
        f"`grid=({gx}, {gy})`, `block=({bx}, {by})`; a color is a block. Grey on the right: the {width * height - differ} "
        "threads whose two numbers agree.",
        f"`grid=({gx}, {gy})`、`block=({bx}, {by})`，每种颜色是一个线程块。右表灰色的 {width * height - differ} 个线程，两个数恰好相等。",
    )
    return figure(s, alt=alt, caption=caption)
