"""The kernels of two steps of the engine, as they were measured, under the roofline of the GPU."""

from __future__ import annotations

import math
from typing import NamedTuple

from cudatut.site import locale, localize, references
from cudatut.site.svg import Svg, figure, tr

EXAMPLE, CELL = "llm/serving_steps", "kernels"
STEPS = (("one request", "一个请求", "c2"), ("256 requests", "256 个请求", "c4"))
LEFT, RIGHT, TOP, BOTTOM = 62, 702, 30, 452
GAP = 16  # between labels below each other


class Point(NamedTuple):
    name: str
    tint: str
    x: float  # FLOPs per byte
    y: float  # TFLOP/s
    share: float  # of the bandwidth, in %


def _name(label: str) -> str:
    return localize.current().chinese(label) if locale.current() == "zh" else label


def _points() -> tuple[list[list[Point]], list[str]]:
    """Of each step its kernels that compute, and the names of all that only move data."""
    steps, silent = [], {}
    for (_, _, tint), result in zip(STEPS, references.load(EXAMPLE).results(CELL)):
        columns = [column["name"] for column in result["columns"]]
        points = []
        for row in result["rows"]:
            name, of = _name(row["name"]), dict(zip(columns, row["values"]))
            if of["FLOP per byte"]:
                x, y = of["FLOP per byte"], of["TFLOP/s"]
                points.append(Point(name, tint, x, y, of["of the bandwidth"]))
            elif of["FLOP per byte"] is not None:
                silent[name] = None
        steps.append(points)
    return steps, list(silent)


def _apart(wanted: list[float]) -> list[float]:
    """Heights at least GAP apart, in the same order, near those that are wanted."""
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    found, above = [0.0] * len(wanted), -math.inf
    for i in order:
        found[i] = above = max(wanted[i], above + GAP)
    # All were moved down only: half of it back.
    shift = sum(a - b for a, b in zip(found, wanted)) / max(1, len(wanted))
    return [y - shift for y in found]


def roofline() -> str:
    """Each kernel as a point: FLOPs for each byte that it has to move, and FLOPs per second by itself."""
    memory = float(references.value(f'{EXAMPLE}#{CELL}["GPU memory"].value')) / 1e3  # TB/s
    tensor = float(references.value('llm/one_token#limits["tensor cores"].value'))
    steps, silent = _points()
    points = [point for step in steps for point in step]
    x0, x1 = 0.15, 4000.0
    y0 = min(point.y for point in points) / 2.5
    y1 = 2.5 * tensor

    def px(x: float) -> float:
        return LEFT + (RIGHT - LEFT) * math.log(x / x0) / math.log(x1 / x0)

    def py(y: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * math.log(y / y0) / math.log(y1 / y0)

    s = Svg(712, 508)
    for x in (1, 10, 100, 1000):
        s.line(px(x), TOP, px(x), BOTTOM, "grid")
        s.text(px(x), BOTTOM + 18, x, "muted", size=12)
    for power in range(math.ceil(math.log10(y0)), 4):
        y = 10**power
        s.line(LEFT, py(y), RIGHT, py(y), "grid")
        s.text(LEFT - 6, py(y) + 4, f"{y:g}", "muted", "end", 12)
    s.text(4, 16, tr("TFLOP/s (logarithmic)", "TFLOP/s（对数）"), "muted", "start", 12)
    s.text(
        (LEFT + RIGHT) / 2, BOTTOM + 38,
        tr("FLOPs per byte (logarithmic)", "每字节的 FLOP（对数）"), "muted", size=12,
    )  # fmt: skip
    bend = tensor / memory
    corners = (x0, x0 * memory), (bend, tensor), (x1, tensor)
    s.polyline([(px(x), py(y)) for x, y in corners], "accent")
    of_tensor = tr(f"tensor cores: {tensor:.0f} TFLOP/s", f"张量核心：{tensor:.0f} TFLOP/s")
    s.text(RIGHT - 4, py(tensor) - 8, of_tensor, "accent", "end", 12)
    of_memory = tr(f"memory: {1e3 * memory:.0f} GB/s", f"显存：{1e3 * memory:.0f} GB/s")
    s.text(px(4) - 8, py(4 * memory) - 12, of_memory, "accent", "end", 12)
    for i, (en, zh, tint) in enumerate(STEPS):
        s.circle(LEFT + 20, TOP + 24 + 22 * i, 6, tint + " solid")
        s.text(LEFT + 34, TOP + 28 + 22 * i, tr(en, zh), "", "start", 12)

    # Names stand in columns, to the right of the points that they belong to; those of the few on the far left above them.
    for low, high in ((0, 1.2), (1.2, 20), (20, math.inf)):
        group = [point for point in points if low <= point.x < high]
        if not group:
            continue
        at = px(max(point.x for point in group)) + 26
        for point, y in zip(group, _apart([py(point.y) for point in group])):
            said = f"{point.name}{tr(': ', '：')}{point.share:.0f} %"
            if low == 0:
                s.text(px(point.x), py(point.y) - 10, said, point.tint, size=11)
                continue
            s.line(px(point.x), py(point.y), at - 4, y, "axis")
            s.text(at, y + 4, said, point.tint, "start", 11)
    for point in points:
        s.circle(px(point.x), py(point.y), 5, point.tint + " solid")
    told = tr("; ", "；").join(
        tr(en, zh)
        + tr(": ", "：")
        + tr(", ", "、").join(
            tr(
                f"{p.name} at {p.x:.1f} FLOPs per byte {p.y:.3g} TFLOP/s, {p.share:.0f} % of the bandwidth",
                f"{p.name}（每字节 {p.x:.1f} FLOP，{p.y:.3g} TFLOP/s，带宽的 {p.share:.0f} %）",
            )
            for p in step
        )
        for (en, zh, _), step in zip(STEPS, steps)
    )
    alt = tr(
        f"A roofline of {1e3 * memory:.0f} GB/s and {tensor:.0f} TFLOP/s with the kernels of two steps. {told}.",
        f"roofline：{1e3 * memory:.0f} GB/s 与 {tensor:.0f} TFLOP/s，以及两种步骤中的各个 kernel。{told}。",
    )
    caption = tr(
        "Every kernel of a step that computes, measured by itself; the percentages are shares of the memory bandwidth. "
        f"Not drawn, because they compute nothing: {', '.join(silent)}.",
        f"一步里做计算的每个 kernel，各自单独测量；百分数是占显存带宽的比例。没有画出的只搬数据：{'、'.join(silent)}。",
    )
    return figure(s, alt=alt, caption=caption)
