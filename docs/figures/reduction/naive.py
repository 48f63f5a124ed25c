"""Drawings of the first rung: the tree of a block from the kernel's own index arithmetic, and the launches after it."""

import itertools

from cudatut.site.drawing import Grid, Svg, figure, hue, tr

_CELL, _BOX, _LEFT, _ROW = 42, 40, 78, 86

# Values for the leaves, small enough to add up by eye.
_VALUES = (3, 1, 7, 0, 4, 1, 6, 3, 2, 5, 1, 8, 0, 2, 9, 4)


def rounds(mapping: str, block: int) -> list[tuple[int, list[tuple[int, int, int]]]]:
    """The tree as the kernels walk it: per round its distance, and (thread, word written, word added) of each addition.

    mapping: 'naive' (modulo), 'interleaved' (strided index) or 'sequential'. block: threads, a power of two.
    """
    found = []
    if mapping == "sequential":
        half = block // 2
        while half > 0:
            found.append((half, [(t, t, t + half) for t in range(block) if t < half]))
            half //= 2
        return found
    step = 1
    while step < block:
        if mapping == "naive":
            pairs = [(t, t, t + step) for t in range(block) if t % (2 * step) == 0]
        else:
            pairs = [
                (t, 2 * step * t, 2 * step * t + step) for t in range(block) if 2 * step * t < block
            ]
        found.append((step, pairs))
        step *= 2
    return found


def draw_tree(s: Svg, y: float, mapping: str, block: int, warp: int) -> None:
    """One tree with its leaves at y; a box holds the thread that wrote it and the value, its color is the warp."""
    values = [_VALUES[w % len(_VALUES)] for w in range(block)]
    words = Grid(s, _LEFT, y, _CELL, _ROW, gap=(4, _ROW - _BOX), rx=4)
    words.heads(range(block), up=8).row(0, [("c0", value) for value in values])
    words.named(0, 4, tr("start", "开始"))
    for number, (distance, pairs) in enumerate(rounds(mapping, block), 1):
        top = y + number * _ROW
        s.text_from(4, top + 16, tr(f"round {number}", f"第 {number} 轮"))
        s.text_from(4, top + 36, tr(f"distance {distance}", f"距离 {distance}"), "muted")
        for thread, to, other in pairs:
            values[to] += values[other]
            color, x, start = hue(thread // warp), words.center(0, to)[0], top - _ROW + _BOX
            s.line(words.center(0, other)[0], start, x + 5, top, color).line(
                x, start, x, top, color
            )
            words.box(number, to, color, f"t{thread}\n{values[to]}")


def height(mapping: str, block: int) -> float:
    """Units that `draw_tree` needs from the leaves' y downwards."""
    return _ROW * len(rounds(mapping, block)) + _BOX + 6


def width(block: int) -> float:
    return _LEFT + _CELL * block + 8


def tree(block: int = 8) -> str:
    """The tree of rung 1 over one block: word w of shared memory in column w, time downwards."""
    s = Svg(max(width(block), 420), 26 + height("naive", block))
    draw_tree(s, 26, "naive", block, warp=block)
    count = len(rounds("naive", block))
    working = [len(pairs) for _, pairs in rounds("naive", block)]
    total = sum(_VALUES[w % len(_VALUES)] for w in range(block))
    alt = tr(
        f"A tree over {block} words of shared memory. In {count} rounds {', '.join(map(str, working))} threads add the "
        f"word at distance 1, 2, 4 and so on to their own, until word 0 holds {total}.",
        f"用一棵树对共享内存里的 {block} 个元素求和。{count} 轮中，分别有 {'、'.join(map(str, working))} 个线程把右边相隔 1、2、4……的元素"
        f"加到自己的元素上，最后 0 号元素是 {total}。",
    )
    caption = tr(
        f"One block of {block} threads: a column is a word of shared memory, tK is thread K, below it the value that it "
        f"wrote. {block} words, {count} rounds, {sum(working)} additions.",
        f"一个 {block} 线程的线程块：每列是共享内存里的一个元素，tK 表示线程 K，下面是线程写入的值。{block} 个元素，{count} 轮，{sum(working)} 次加法。",
    )
    return figure(s, alt=alt, caption=caption)


def launches(n: int = 1_111_111, block: int = 256) -> str:
    """One bar per launch: how many elements it reads and how many blocks it has, until one sum is left."""
    counts = [n]
    while counts[-1] > 1:
        counts.append(-(-counts[-1] // block))
    s = Svg(700, 20 + 62 * (len(counts) - 1))
    top, longest = 10, 420
    digits = len(str(n))
    for number, (have, left) in enumerate(itertools.pairwise(counts), 1):
        y = top + 62 * (number - 1)
        s.text_from(4, y + 26, tr(f"launch {number}", f"第 {number} 次启动"), "bold")
        # To scale the second bar would be invisible already; the length follows the digits.
        bar = max(150, longest * len(str(have)) / digits)
        s.rect(100, y, bar, 40, "c1", tr(f"{have:,} elements", f"{have:,} 个元素"))
        s.arrow(100 + bar + 4, y + 20, 100 + bar + 40, y + 20, "muted")
        blocks = tr(f"{left:,} blocks" if left > 1 else "1 block", f"{left:,} 个线程块")
        s.text_from(100 + bar + 46, y + 25, blocks)
    steps = ", ".join(f"{c:,}" for c in counts)
    alt = tr(
        f"{len(counts) - 1} launches of blocks of {block} threads bring {n:,} elements to one: {steps}.",
        f"每块 {block} 个线程，启动 {len(counts) - 1} 次，把 {n:,} 个元素归约成一个数：{steps}。",
    )
    caption = tr(
        f"Each launch leaves one partial sum per block of {block}, and the next launch sums these (bars not to scale).",
        f"每次启动，每个 {block} 线程的线程块留下一个部分和，由下一次启动继续求和（条长不按比例）。",
    )
    return figure(s, alt=alt, caption=caption)
