"""The kernels of two steps of the engine, as they were measured, under the roofline of the GPU."""

import math
from typing import NamedTuple

from cudatut.site import references
from cudatut.site.drawing import Roofline, figure, tr

EXAMPLE, CELL = "llm/serving_steps", "kernels"
STEPS = (("one request", "一个请求", "c2"), ("256 requests", "256 个请求", "c4"))
GAP = 16  # between labels below each other


class Point(NamedTuple):
    name: str
    tint: str
    x: float  # FLOPs per byte
    y: float  # TFLOP/s
    share: float  # of the bandwidth, in %


def _points() -> tuple[list[list[Point]], list[str]]:
    """Of each step its kernels that compute, and the names of all that only move data."""
    steps: list[list[Point]] = []
    silent: dict[str, None] = {}
    for index, (_, _, tint) in enumerate(STEPS):
        points = []
        for label, of in references.table(EXAMPLE, CELL, index).items():
            name, x = references.label(label), of["FLOP per byte"]
            if x:
                points.append(Point(name, tint, x, of["TFLOP/s"], of["of the bandwidth"]))
            elif x is not None:
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
    least = min(point.y for point in points) / 2.5
    field = Roofline((0.15, 4000), (least, 2.5 * tensor), bottom=452)
    of_memory = tr(f"memory: {1e3 * memory:.0f} GB/s", f"显存：{1e3 * memory:.0f} GB/s")
    of_tensor = tr(f"tensor cores: {tensor:.0f} TFLOP/s", f"张量核心：{tensor:.0f} TFLOP/s")
    field.slope(1e3 * memory, tensor, text=of_memory, down=-12)
    field.roof(tensor, 1e3 * memory, text=of_tensor)
    for i, (en, zh, tint) in enumerate(STEPS):
        y = field.top + 24 + 22 * i
        field.s.circle(82, y, 6, tint + " solid").text_from(96, y + 4, tr(en, zh), "", 12)

    # Names stand in columns, to the right of the points that they belong to; those of the few on the far left above them.
    for low, high in ((0, 1.2), (1.2, 20), (20, math.inf)):
        group = [point for point in points if low <= point.x < high]
        if not group:
            continue
        at = field.px(max(point.x for point in group)) + 26
        for point, y in zip(group, _apart([field.py(point.y) for point in group])):
            said = f"{point.name}{tr(': ', '：')}{point.share:.0f} %"
            if low == 0:
                field.say(point.x, point.y, said, point.tint, 0, -10, 11)
            else:
                field.s.line(*field.at(point.x, point.y), at - 4, y, "axis")
                field.s.text_from(at, y + 4, said, point.tint, 11)
    for point in points:
        field.dot(point.x, point.y, point.tint + " solid")
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
        f"roofline：{1e3 * memory:.0f} GB/s 与 {tensor:.0f} TFLOP/s，以及两种步里的各个 kernel。{told}。",
    )
    caption = tr(
        "Every kernel of a step that computes, measured by itself; the percentages are shares of the memory bandwidth. "
        f"Not drawn, because they compute nothing: {', '.join(silent)}.",
        f"一步里做计算的每个 kernel，各自单独测量；百分数是占显存带宽的比例。没有画出的 kernel 只搬运数据：{'、'.join(silent)}。",
    )
    return figure(field.s, alt=alt, caption=caption)
