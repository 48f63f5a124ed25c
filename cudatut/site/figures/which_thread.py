"""Drawings of which thread am I: a block cut into warps, pixel against thread, lanes in use."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr

_HUES = 6


def _hue(number: int) -> str:
    return f"c{1 + number % _HUES}"


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
        f"the cut does not care where a row ends. The last warp lacks {idle} threads.",
        f"一个 {bx} × {by} 的线程块，按行编号，切成 {count} 个线程束，每个 {warp} 个线程；切口不管一行在哪里结束。最后一个线程束缺 {idle} 个线程。",
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


def patches(width: int = 32, height: int = 8, px: int = 8, py: int = 4) -> str:
    """The patches of exercise 2: width x height pixels of a block, cut into px x py patches, one per warp."""
    cell, across = 21, width // px
    s = Svg(width * cell + 8, height * cell + 8)
    for number in range(across * (height // py)):
        left, top = 4 + number % across * px * cell, 4 + number // across * py * cell
        name = tr(f"warp {number}", f"线程束 {number}")
        s.rect(left, top, px * cell, py * cell, _hue(number), f"{name}\n{px} × {py}", rx=0)
    alt = tr(
        f"{width} by {height} pixels in patches of {px} by {py}; each of the {across * (height // py)} warps covers one patch.",
        f"{width} × {height} 个像素切成 {px} × {py} 的小块，{across * (height // py)} 个线程束各负责一块。",
    )
    return figure(s, alt=alt)
