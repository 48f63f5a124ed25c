"""Drawings of memory/dynamic: who launches what, and the tiles of a picture as the program divided it."""

from __future__ import annotations

import re
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
    n, left, top = len(rows), 8, 8
    unit = 512 / n
    s = Svg(left * 2 + 512, top + 512 + 44)
    runs: dict[tuple[int, int], int] = {}  # of what was computed: from, to -> its first row

    def draw(run: tuple[int, int], first: int, end: int) -> None:
        x, wide = left + run[0] * unit, (run[1] - run[0]) * unit
        s.rect(x, top + first * unit, wide, (end - first) * unit, "c3 solid", rx=0)

    for y, row in enumerate(rows):
        here = {match.span() for match in re.finditer("[a-z]+", row)}
        for run in [run for run in runs if run not in here]:
            draw(run, runs.pop(run), y)
        for run in sorted(here):
            runs.setdefault(run, y)
        x = 0
        while x < n:
            letter = row[x]
            if letter.islower():
                x += 1
                continue
            wide = 1 << (int(letter) if letter.isdigit() else ord(letter) - ord("A"))
            if y % wide == 0:
                cls = "c4 solid" if letter.isdigit() else "c0"
                s.rect(left + x * unit, top + y * unit, wide * unit, wide * unit, cls, rx=0)
            x += wide
    for run, first in runs.items():
        draw(run, first, n)
    legend(
        s,
        left,
        top + 512 + 26,
        [
            ("c0", tr("filled", "填满")),
            ("c4 solid", tr("filled with the most steps", "用最大步数填满")),
            ("c3 solid", tr("computed", "逐个像素算")),
        ],
    )
    alt = tr(
        f"A square picture of the Mandelbrot set; {number} tiles were looked at. Large tiles inside the set and far from it were "
        "filled, the smallest ones around its border were computed.",
        f"一张正方形的 Mandelbrot 集图片，一共看过 {number} 块。集合内部和远处的大块直接填满，边界周围最小的块逐个像素计算。",
    )
    caption = tr(
        f"What the program did: {launches} tiles were divided, each by a launch. Only the smallest tiles were computed pixel by "
        "pixel, where neighbors differ.",
        f"程序实际的做法：有 {launches} 块被分开，每分开一块启动一次；只有最小的块逐个像素计算，那里相邻像素的值不同。",
    )
    return figure(s, alt=alt, caption=caption)
