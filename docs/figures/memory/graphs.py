"""Drawings of memory/graphs: launches one by one and as a graph, and a graph that goes round."""

from __future__ import annotations

from cudatut.site.drawing import Lanes, Svg, figure, tr


def two_ways(
    launch: float = 5, kernel: float = 2, count: int = 5, once: float = 6, gap: float = 1
) -> str:
    """A chain of `count` kernels of `kernel` units. One by one the host needs `launch` for each; as a graph `once` for all
    of them, and the GPU `gap` from one kernel to the next."""
    left, unit, high = 150, 17, 40
    long = count * launch + kernel
    s = Svg(left + long * unit + 14, 6 * high)
    lanes = Lanes(s, left, 26, unit, high, gap=(1, 12), rx=3, size=12)
    host, gpu = tr("host", "主机"), "GPU"
    s.text_from(12, 16, tr("one by one", "逐个启动"), "bold")
    for lane, name in ((0, host), (1, gpu), (3, host), (4, gpu)):
        lanes.named(lane, 12, name, "muted")
    for one in range(count):
        ready = (one + 1) * launch
        lanes.bar(0, one * launch, ready, "c0", tr("launch", "启动"))
        lanes.bar(1, ready, ready + kernel, "c2", str(one))
    s.text_from(12, 16 + 3 * high, tr("as a graph", "用 CUDA graph"), "bold")
    lanes.bar(3, 0, once, "c0", tr("one launch", "一次启动"))
    for one in range(count):
        begin = once + one * (kernel + gap)
        lanes.bar(4, begin, begin + kernel, "c2", str(one))
    alt = tr(
        f"{count} kernels of {kernel} units. One by one, the host needs {launch} units for each launch, and the GPU waits for it "
        f"between two kernels. As a graph, the host needs {once} units once, and the kernels follow each other at a distance of {gap}.",
        f"{count} 个 kernel，每个 {kernel} 个单位。逐个启动时，主机每次启动要 {launch} 个单位，GPU 在两个 kernel 之间只能等待；"
        f"用 CUDA graph 时，主机总共只要 {once} 个单位，各个 kernel 前后相隔 {gap} 个单位。",
    )
    caption = tr(
        f"{count} short kernels, in units of time: {long:g} one by one, {once + count * (kernel + gap) - gap:g} as a graph.",
        f"{count} 个短 kernel，按时间单位计：逐个启动用 {long:g}，用 CUDA graph 用 {once + count * (kernel + gap) - gap:g}。",
    )
    return figure(s, alt=alt, caption=caption)


def loop(steps: int = 2) -> str:
    """A WHILE node whose body has `steps` kernels and one that decides."""
    wide, high, left, top = 104, 40, 34, 62
    names = ["spread"] * steps + ["decide"]
    s = Svg(left + (wide + 40) * len(names) + 130, 176)
    right = left + (wide + 40) * len(names) - 40
    s.rect(left - 18, 30, right - left + 36, 110, "c0")
    s.text_from(left - 10, 48, tr("WHILE node", "WHILE 节点"), "bold")
    for number, name in enumerate(names):
        x = left + number * (wide + 40)
        s.rect(x, top, wide, high, "c3" if name == "decide" else "c2", name)
        if number:
            s.arrow(x - 36, top + high / 2, x - 4, top + high / 2)
    back = top + high + 22
    s.line(right - wide / 2, top + high, right - wide / 2, back)
    s.line(right - wide / 2, back, left + wide / 2, back)
    s.arrow(left + wide / 2, back, left + wide / 2, top + high + 4)
    s.text((left + right) / 2, back - 6, tr("condition 1: again", "条件为 1：再来一轮"), "muted")
    s.arrow(right + 18, top + high / 2, right + 60, top + high / 2)
    s.text_from(right + 66, top + high / 2 + 4, tr("condition 0", "条件为 0"), "muted")
    alt = tr(
        f"A WHILE node holds a graph of {len(names)} kernels in a row: {', '.join(names)}. The last one sets the condition: "
        "with 1 the body runs again, with 0 the graph goes on.",
        f"一个 WHILE 节点，里面依次是 {len(names)} 个 kernel：{'、'.join(names)}。最后一个设定条件：为 1 就再运行一轮，"
        "为 0 就继续往后。",
    )
    caption = tr(
        "The body is a graph of its own. The host launches the whole once.",
        "循环体本身也是 CUDA graph。主机只启动一次。",
    )
    return figure(s, alt=alt, caption=caption)
