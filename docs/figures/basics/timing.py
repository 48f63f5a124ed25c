"""Drawings of timing: what a timer wraps, and the order in which a benchmark runs its contestants."""

from __future__ import annotations

import random
from collections.abc import Sequence

from cudatut.site.svg import Svg, figure, tr


def wrapped(whole: float = 2.35, kernel: float = 1.41, source: str = "") -> str:
    """What an event timer around everything counts, beside the kernel alone; in ms."""
    left, scale, top = 18, 620 / whole, 58
    before = (whole - kernel) * 0.7  # only the sum is known; most of what is copied goes in
    after = whole - kernel - before
    s = Svg(660, 190)
    x = left
    parts = (
        (before, "c0", tr("allocate, copy in", "分配、复制到 GPU")),
        (kernel, "c2", tr(f"kernel {kernel} ms", f"kernel {kernel} ms")),
        (after, "c0", tr("copy out", "复制回来")),
    )
    edges = [x]
    for length, cls, label in parts:
        s.rect(x, top, length * scale - 2, 44, cls, label)
        x += length * scale
        edges.append(x)
    for y, start, stop, label, cls in (
        (top - 14, edges[0], edges[3], tr(f"the timer: {whole} ms", f"计时器：{whole} ms"), "warn"),
        (
            top + 62,
            edges[1],
            edges[2],
            tr(f"the question: {kernel} ms", f"想问的：{kernel} ms"),
            "good",
        ),
    ):
        s.line(start, y, stop - 2, y, cls)
        for end in (start, stop - 2):
            s.line(end, y - 6, end, y + 6, cls)
        s.text((start + stop) / 2, y - 10 if y < top else y + 24, label, cls)
    s.text(left, 170, source, "muted", "start")
    alt = tr(
        f"A bar of {whole} ms: allocation and copies on both sides of a kernel of {kernel} ms.",
        f"一条 {whole} ms 的时间条：{kernel} ms 的 kernel，前后是分配和复制。",
    )
    caption = tr(
        f"{100 * (whole - kernel) / whole:.0f} % of what was timed is not the kernel. The source does not say how much of that came before the kernel and how much after it.",
        f"被计时的部分里，有 {100 * (whole - kernel) / whole:.0f} % 不是 kernel。这一部分在 kernel 前后各占多少，原资料没有给出。",
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
        s.text(left - 14, y + 27, tr(f"round {turn + 1}", f"第 {turn + 1} 轮"), "muted", "end")
        chance.shuffle(order)
        x = left
        for name in order:
            s.rect(x, y, flush, 42, "c0", tr("flush", "清空"), rx=3)
            s.line(x + flush + 3, y - 6, x + flush + 3, y + 48, "accent")
            s.rect(x + flush + 6, y, run, 42, f"c{1 + list(names).index(name) % 6}", name, rx=3)
            s.line(x + flush + run + 9, y - 6, x + flush + run + 9, y + 48, "accent")
            x += flush + run + gap
    alt = tr(
        f"{turns} rounds of {len(names)} contestants. Each run is preceded by a flush of the L2 cache and stands between two "
        "events; the order is drawn anew for every round.",
        f"{turns} 轮，{len(names)} 个参赛者。每次运行之前先清空 L2 缓存，前后各有一个事件；每一轮都重新随机排序。",
    )
    caption = tr(
        "Vertical lines are events. What stands between two of them is timed; the flush is not.",
        "竖线是事件，只有夹在两个事件之间的部分才计时，清空缓存不计。",
    )
    return figure(s, alt=alt, caption=caption)
