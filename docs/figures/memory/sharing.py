"""Drawings of shared GPUs: processes by turns and side by side, and the turns that two processes took."""

from cudatut.site import references
from cudatut.site.drawing import Lanes, Svg, figure, hue, tr

EXAMPLE = "memory/sharing"


def ways(groups: int = 4, turns: int = 6) -> str:
    """Two processes whose kernels fill one of so many groups of SMs: by turns, and side by side. Time goes to the right."""
    left, lane, wide, between = 66, 26, 40, 60
    across = left + (2 * turns) * wide + between
    s = Svg(across + 10, 56 + groups * lane + 6)
    halves = (
        (left, tr("by turns", "轮流"), [(k % 2, k, k + 1) for k in range(turns)]),
        (left + turns * wide + between, tr("side by side", "并排"), [(0, 0, turns // 2), (1, 0, turns // 2)]),
    )  # fmt: skip
    for number, (x, name, spans) in enumerate(halves):
        s.text_from(x, 18, name, "bold")
        lanes = Lanes(s, x, 50, wide, lane, gap=(0, 4))
        for row in range(groups):
            y = lanes.center(row, 0)[1]
            s.line(x, y, x + turns * wide, y, "axis")
            if number == 0:
                s.text_to(x - 8, y + 5, "SM" if row == 0 else "", "muted")
        s.text_to(x + turns * wide, 40, tr("time", "时间"), "muted")
        for process, begin, end in spans:
            row = process if number == 1 else 0
            lanes.bar(row, begin, end, hue(process), "AB"[process])
    alt = tr(
        f"A GPU as {groups} groups of SMs, two processes that need one group each. By turns, only one of them runs at a time, "
        f"and both need {turns} units of time. Side by side, each has a group of its own, and both need {turns // 2}.",
        f"把 GPU 画成 {groups} 组 SM，两个进程各需要一组。轮流：同一时间只有一个进程运行，两个都完成要 {turns} 个单位时间。"
        f"并排：各占一组，两个都完成只要 {turns // 2} 个单位时间。",
    )
    caption = tr(
        "Two processes, A and B, that each fill a quarter of the SMs. By turns, three quarters are idle all the time.",
        "进程 A 和 B 各占四分之一的 SM。轮流使用时，另外四分之三一直闲着。",
    )
    return figure(s, alt=alt, caption=caption)


def turns() -> str:
    """When each of two processes ran, from the times that their kernels noted: a lane for each, in milliseconds."""
    pieces = references.table(EXAMPLE, "timelines").values()
    last = max(piece["end"] for piece in pieces)
    left, lane = 60, 30
    s = Svg(720, 30 + 2 * lane + 26)
    lanes = Lanes(s, left, 20, 640 / last, lane, gap=(0, 6))
    for row, name in enumerate("AB"):
        lanes.axis(row, name, 710, x=24)
    for piece in pieces:
        row = "AB".index(piece["process"])
        lanes.bar(row, piece["begin"], piece["end"], hue(row))
    step = max(int(last / 1e3 / 8), 1)
    for ms in range(0, int(last / 1e3) + 1, step):
        s.text(lanes.when(1e3 * ms), 20 + 2 * lane + 18, f"{ms} ms", "muted")
    count = len(pieces)
    alt = tr(
        f"Two lanes, one for each process. In the time shown they ran in {count} pieces, by turns.",
        f"两行，每个进程一行。图中这段时间里，它们共运行了 {count} 段，轮流进行。",
    )
    caption = tr(
        "When the threads of two processes made steps, as they noted it themselves.",
        "两个进程的线程在哪些时间里真正在做步，由线程自己记下。",
    )
    return figure(s, alt=alt, caption=caption)
