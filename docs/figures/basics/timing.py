"""Drawings of timing: what a timer wraps, and the order in which a benchmark runs its contestants."""

import random
from collections.abc import Sequence

from cudatut.site.drawing import Lanes, Svg, figure, hue, tr


def wrapped(whole: float = 2.35, kernel: float = 1.41, source: str = "") -> str:
    """What an event timer around everything counts, beside the kernel alone; in ms."""
    left, scale, top = 18, 620 / whole, 58
    before = (whole - kernel) * 0.7  # only the sum is known; most of what is copied goes in
    after = whole - kernel - before
    s = Svg(660, 190)
    parts = (
        (before, "c0", tr("allocate, copy in", "分配、复制到 GPU")),
        (kernel, "c2", f"kernel {kernel} ms"),
        (after, "c0", tr("copy out", "复制回来")),
    )
    lane, at = Lanes(s, left, top, scale, 46, gap=2, rx=4), 0.0
    for length, cls, label in parts:
        lane.bar(0, at, at + length, cls, label)
        at += length

    def measured(y: float, start: float, stop: float, cls: str, label: str, down: float) -> None:
        start, stop = lane.when(start), lane.when(stop) - 2
        s.line(start, y, stop, y, cls).line(start, y - 6, start, y + 6, cls)
        s.line(stop, y - 6, stop, y + 6, cls).text((start + stop) / 2, y + down, label, cls)

    timer, asked = tr(f"the timer: {whole} ms", f"计时器：{whole} ms"), before + kernel
    question = tr(f"the question: {kernel} ms", f"想问的：{kernel} ms")
    measured(top - 14, 0, whole, "warn", timer, -10)
    measured(top + 62, before, asked, "good", question, 24)
    s.text_from(left, 170, source, "muted")
    alt = tr(
        f"A bar of {whole} ms: allocation and copies on both sides of a kernel of {kernel} ms.",
        f"一条 {whole} ms 的时间条：{kernel} ms 的 kernel，前后是分配和复制。",
    )
    caption = tr(
        f"{100 * (whole - kernel) / whole:.0f} % of what was timed is not the kernel. The source does not say how much of that came before the kernel and how much after it.",
        f"测得的时间里，有 {100 * (whole - kernel) / whole:.0f} % 不属于 kernel。这部分时间在 kernel 前后各占多少，原资料没有给出。",
    )
    return figure(s, alt=alt, caption=caption)


def rounds(names: Sequence[str] = ("A", "B", "C"), turns: int = 3) -> str:
    """The order in which `ct.bench` runs its contestants: drawn anew for every round."""
    flush, run, gap = 62, 66, 12
    width = (flush + run + gap) * len(names)
    left, top, pitch = 96, 16, 62
    s = Svg(left + width + 12, top + pitch * turns + 6)
    order, chance = list(names), random.Random(0)
    for turn in range(turns):
        y = top + pitch * turn
        s.text_to(left - 14, y + 27, tr(f"round {turn + 1}", f"第 {turn + 1} 轮"), "muted")
        chance.shuffle(order)
        x = left
        for name in order:
            color = hue(list(names).index(name))
            s.rect(x, y, flush, 42, "c0", tr("flush", "清空"), rx=3)
            s.line(x + flush + 3, y - 6, x + flush + 3, y + 48, "accent")
            s.rect(x + flush + 6, y, run, 42, color, name, rx=3)
            s.line(x + flush + run + 9, y - 6, x + flush + run + 9, y + 48, "accent")
            x += flush + run + gap
    alt = tr(
        f"{turns} rounds of {len(names)} contestants. Each run is preceded by a flush of the L2 cache and stands between two "
        "events; the order is drawn anew for every round.",
        f"{turns} 轮，{len(names)} 个版本。每次运行之前先清空 L2 缓存，前后各有一个事件；每一轮都重新随机排序。",
    )
    caption = tr(
        "Vertical lines are events. What stands between two of them is timed; the flush is not.",
        "竖线是事件，只有夹在两个事件之间的部分才计时，清空缓存不计。",
    )
    return figure(s, alt=alt, caption=caption)
