"""Drawings of memory/dynamic: who launches what, and the tiles of a picture as the program divided it."""

from __future__ import annotations

from collections.abc import Sequence

from cudatut.site import references
from cudatut.site.drawing import Lanes, Svg, figure, legend, tr

EXAMPLE = "memory/dynamic"


def who_launches(work: Sequence[float] = (5, 3, 2), launch: float = 2, back: float = 2) -> str:
    """Levels of a subdivision of `work` units, launched by the host, which reads back how many tiles there are (`back`),
    and by the GPU, where each launch takes `launch` units in the kernel that makes it."""
    left, unit, high = 160, 24, 40
    long = sum(work) + len(work) * (launch + back)
    s = Svg(left + long * unit + 14, 6 * high)
    lanes = Lanes(s, left, 26, unit, high, gap=(1, 12), rx=3, size=12)
    host, gpu = tr("host", "主机"), "GPU"
    s.text_from(12, 16, tr("the host launches", "主机启动"), "bold")
    for lane, name in ((0, host), (1, gpu), (3, host), (4, gpu)):
        lanes.named(lane, 12, name, "muted")
    at = 0.0
    for level, units in enumerate(work):
        lanes.bar(0, at, at + launch, "c0", tr("launch", "启动"))
        at += launch
        lanes.bar(1, at, at + units, "c2", tr(f"level {level}", f"第 {level} 级"))
        at += units
        if level < len(work) - 1:
            lanes.bar(0, at, at + back, "c3", tr("read", "读回"))
            at += back
    s.text_from(12, 16 + 3 * high, tr("the GPU launches", "GPU 启动"), "bold")
    lanes.bar(3, 0, launch, "c0", tr("launch", "启动"))
    at = launch
    for level, units in enumerate(work):
        lanes.bar(4, at, at + units, "c2", tr(f"level {level}", f"第 {level} 级"))
        at += units
    end = at
    alt = tr(
        f"A subdivision of {len(work)} levels. Above, the host launches each level, and between two of them reads back how "
        "many tiles the next one has. Below, the host launches once, and the levels follow each other on the GPU.",
        f"分成 {len(work)} 级。上面由主机启动每一级，两级之间要读回下一级有多少块；下面主机只启动一次，各级在 GPU 上接连运行。",
    )
    caption = tr(
        f"The same work, in units of time: {at_host(work, launch, back):g} if the host launches each level, {end:g} if launches "
        "by the GPU cost nothing.",
        f"同样的工作，按时间单位计：由主机启动各级用 {at_host(work, launch, back):g}；由 GPU 启动，如果启动不花时间，用 {end:g}。",
    )
    return figure(s, alt=alt, caption=caption)


def at_host(work: Sequence[float], launch: float, back: float) -> float:
    """Units of time until the last level is done, where the host launches each and reads back between two."""
    return sum(work) + len(work) * launch + (len(work) - 1) * back


def tiles() -> str:
    """The tiles of the picture, from the recording."""
    rows = [str(row) for row in references.facts(EXAMPLE, "picture").values()]
    shown = references.facts(EXAMPLE, "picture-facts")
    return mosaic(rows, int(shown["tiles"]), int(shown["launches"]))


def mosaic(rows: Sequence[str], number: int, launches: int) -> str:
    """Tiles as letters: small where computed, capital where filled, digits where filled with the most steps; the letter
    or digit says the side, a (or A, 0) one place, b two, c four ..."""
    unit, left, top = 8, 8, 8
    n = len(rows)
    s = Svg(left * 2 + n * unit, top + n * unit + 44)
    for y, row in enumerate(rows):
        x = 0
        while x < n:
            letter = row[x]
            size = int(letter) if letter.isdigit() else ord(letter.lower()) - ord("a")
            wide = 1 << size
            if letter.islower():
                end = x + wide
                while end < n and row[end] == letter:
                    end += 1
                if y % wide == 0:
                    s.rect(
                        left + x * unit, top + y * unit, (end - x) * unit, wide * unit, "c3", rx=0
                    )
                x = end
                continue
            if y % wide == 0 and x % wide == 0:
                cls = "c4 solid" if letter.isdigit() else "c0"
                s.rect(left + x * unit, top + y * unit, wide * unit, wide * unit, cls, rx=0)
            x += wide
    legend(
        s,
        left,
        top + n * unit + 26,
        [
            ("c0", tr("filled", "填满")),
            ("c4 solid", tr("filled with the most steps", "用最大步数填满")),
            ("c3", tr("computed", "逐个像素算")),
        ],
    )
    alt = tr(
        f"A square picture of the Mandelbrot set, divided into {number} tiles. Large ones lie inside the set and far from it, "
        "the smallest ones along its border.",
        f"一张正方形的 Mandelbrot 集图片，分块过程中共有 {number} 块。集合内部和远处是大块，边界附近是最小的块。",
    )
    caption = tr(
        f"What the program did: {launches} tiles were divided, each by a launch. Only what lies along the border was computed "
        "pixel by pixel.",
        f"程序实际的做法：有 {launches} 块被分开，每分开一块启动一次；只有边界附近逐个像素计算。",
    )
    return figure(s, alt=alt, caption=caption)
