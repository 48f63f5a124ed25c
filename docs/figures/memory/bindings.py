"""Drawings of memory/bindings: what a call is made of, with the loop in Python and in C++."""

from __future__ import annotations

from cudatut.site.drawing import Lanes, Svg, figure, tr


def loops(crossing: float = 2, launch: float = 3, count: int = 3) -> str:
    """`count` launches of `launch` units. A loop in Python crosses to C++ each time, in `crossing` units; one in C++ once."""
    left, unit, high = 150, 34, 40
    each = crossing + launch
    s = Svg(left + count * each * unit + 14, 2 * high + 32)
    lanes = Lanes(s, left, 10, unit, high, gap=(1, 12), rx=3, size=12)
    cross, one = tr("cross", "跨越"), tr("launch", "启动")
    lanes.named(0, 12, tr("loop in Python", "Python 里的循环"), "muted")
    lanes.named(1, 12, tr("loop in C++", "C++ 里的循环"), "muted")
    for k in range(count):
        lanes.bar(0, k * each, k * each + crossing, "c0", cross)
        lanes.bar(0, k * each + crossing, (k + 1) * each, "c2", one)
        lanes.bar(1, crossing + k * launch, crossing + (k + 1) * launch, "c2", one)
    lanes.bar(1, 0, crossing, "c0", cross)
    python, cpp = count * each, crossing + count * launch
    alt = tr(
        f"{count} launches. With the loop in Python, each is a crossing of {crossing:g} units and a launch of {launch:g}. "
        f"With the loop in C++, one crossing of {crossing:g} units comes first, then {count} launches.",
        f"启动 {count} 次。循环在 Python 里：每次先用 {crossing:g} 个单位跨越，再用 {launch:g} 个单位启动；"
        f"循环在 C++ 里：先跨越一次，用 {crossing:g} 个单位，然后连续启动 {count} 次。",
    )
    caption = tr(
        f"{count} launches, in units of time: {python:g} from Python, {cpp:g} from C++.",
        f"启动 {count} 次，按时间单位计：从 Python 是 {python:g}，从 C++ 是 {cpp:g}。",
    )
    return figure(s, alt=alt, caption=caption)
