"""Drawings of which thread am I: who takes which element, a block cut into warps, pixel against thread."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr

_HUES = 6


def _hue(number: int) -> str:
    return f"c{1 + number % _HUES}"


def numbering(n: int = 10, threads: int = 4) -> str:
    """One thread walks through n boxes; below, blocks of `threads` threads take one box each."""
    cell, left, top = 54, 14, 40
    blocks = -(-n // threads)
    slots = blocks * threads
    s = Svg(left * 2 + slots * cell, 262)
    s.text(
        left, 22, tr("One thread, one box after the other", "一个线程，逐个处理"), "bold", "start"
    )
    for i in range(n):
        s.rect(left + i * cell, top, cell - 5, 34, "c1", i)
    s.arrow(left, top + 48, left + n * cell - 5, top + 48, "accent")
    y = 136
    s.text(
        left,
        y - 16,
        tr(
            f"{slots} threads in {blocks} blocks, one box each",
            f"{blocks} 个线程块，共 {slots} 个线程，各处理一个",
        ),
        "bold",
        "start",
    )
    for i in range(slots):
        x, b = left + i * cell, i // threads
        inside = i < n
        s.rect(
            x, y, cell - 5, 34, _hue(b) if inside else "hollow dash muted", i if inside else None
        )
        s.arrow(x + cell / 2 - 3, y + 62, x + cell / 2 - 3, y + 36, "" if inside else "dash muted")
        s.circle(x + cell / 2 - 3, y + 76, 13, _hue(b), i % threads, size=13)
    for b in range(blocks):
        x = left + b * threads * cell
        s.polyline(
            [
                (x, y + 92),
                (x, y + 98),
                (x + threads * cell - 6, y + 98),
                (x + threads * cell - 6, y + 92),
            ],
            "muted",
        )
        s.text(x + threads * cell / 2 - 3, y + 116, tr(f"block {b}", f"{b} 号线程块"), "muted")
    alt = tr(
        f"Above, one thread walks through {n} boxes. Below, {blocks} blocks of {threads} threads: each thread has a "
        f"box of its own, and the last {slots - n} threads have none.",
        f"上面，一个线程依次走过 {n} 个格子。下面，{blocks} 个线程块，每块 {threads} 个线程：每个线程负责一个格子，最后 {slots - n} 个线程没有格子。",
    )
    caption = tr(
        f"Circles are threads, with their number in the block. Boxes are the {n} elements.",
        f"圆圈是线程，里面是它在线程块里的编号；方格是 {n} 个元素。",
    )
    return figure(s, alt=alt, caption=caption)


def warps_of_block(bx: int = 12, by: int = 5, warp: int = 32) -> str:
    """A block of bx x by threads; each cell shows the lane, its color the warp."""
    cell, left, top = 46, 116, 58
    threads = bx * by
    count, idle = -(-threads // warp), -threads % warp
    s = Svg(left + cell * bx + 12, top + 38 * by + 44)
    s.text(left + cell * bx / 2, 18, "threadIdx.x", "mono")
    for x in range(bx):
        s.text(left + cell * x + cell / 2 - 2, top - 10, x, "muted")
    for y in range(by):
        middle = top + 38 * y + 22
        label = f"threadIdx.y = {y}" if y == 0 else y
        s.text(left - 10, middle, label if y else 0, "muted", "end")
        for x in range(bx):
            linear = y * bx + x
            s.rect(left + cell * x, top + 38 * y, cell - 4, 34, _hue(linear // warp), linear % warp)
    s.text(12, top - 10, "threadIdx.y", "mono", "start")
    x, below = left, top + 38 * by + 10
    for number in range(count):
        last = min(threads, warp * (number + 1)) - 1
        s.rect(x, below, 20, 20, _hue(number))
        label = tr(
            f"warp {number}: threads {warp * number} to {last}",
            f"线程束 {number}：线程 {warp * number} 至 {last}",
        )
        s.text(x + 28, below + 15, label, "", "start")
        x += 240
    alt = tr(
        f"A block of {bx} by {by} threads, numbered row by row, is cut into {count} warps of {warp}; "
        f"the end of a row makes no difference. The last warp lacks {idle} threads.",
        f"一个 {bx} × {by} 的线程块，按行编号，分成 {count} 个线程束，每个 {warp} 个线程，不考虑一行在哪里结束。最后一个线程束缺 {idle} 个线程。",
    )
    caption = tr(
        f"`block=({bx}, {by})`: {threads} threads, the number in a cell is the lane. "
        f"Warp {count - 1} has {warp - idle} threads and {idle} empty lanes.",
        f"`block=({bx}, {by})`：{threads} 个线程，格子里的数字是 lane（线程束内编号）。线程束 {count - 1} 只有 {warp - idle} 个线程，空着 {idle} 个 lane。",
    )
    return figure(s, alt=alt, caption=caption)


def pixel_and_thread(gx: int = 2, gy: int = 2, bx: int = 4, by: int = 2) -> str:
    """The same threads numbered twice: row by row through the picture, and block by block."""
    cell, gap, top = 40, 36, 34
    width, height = gx * bx, gy * by
    panel = width * cell
    s = Svg(2 * panel + gap + 8, top + height * 36 + 8)
    differ = 0
    titles = (tr("pixel index", "像素编号"), tr("linear thread id", "线性线程编号"))
    for side, title in enumerate(titles):
        left = 4 + side * (panel + gap)
        s.text(left + panel / 2, 20, title, "bold")
        for y in range(height):
            for x in range(width):
                block = y // by * gx + x // bx
                pixel = y * width + x
                linear = block * bx * by + y % by * bx + x % bx
                differ += side and pixel != linear
                shown = linear if side else pixel
                cls = _hue(block) if pixel != linear or not side else "c0"
                s.rect(left + x * cell, top + y * 36, cell - 3, 33, cls, shown, rx=3)
    alt = tr(
        f"Two tables of {width} by {height} threads in {gx} by {gy} blocks of {bx} by {by}. Left: numbers run along "
        f"the rows of the picture. Right: they run through one block after the other. {differ} of {width * height} differ.",
        f"两张 {width} × {height} 的表，同样的线程分成 {gx} × {gy} 个线程块，每块 {bx} × {by}。左：编号沿图像的行走；右：编号走完一个线程块再走下一个。{width * height} 个里有 {differ} 个不同。",
    )
    caption = tr(
        f"`grid=({gx}, {gy})`, `block=({bx}, {by})`; a color is a block. Grey on the right: the {width * height - differ} "
        "threads whose two numbers agree.",
        f"`grid=({gx}, {gy})`、`block=({bx}, {by})`，每种颜色是一个线程块。右表灰色的 {width * height - differ} 个线程，两种编号恰好相同。",
    )
    return figure(s, alt=alt, caption=caption)
