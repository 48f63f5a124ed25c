"""Figures of the chapter on errors."""

from cudatut.site.drawing import Grid, Kind, Lanes, Svg, figure, tr


def _lanes(units: float, below: float) -> Lanes:
    """Host and GPU with room for so many units of time, and for what stands below them."""
    lanes = Lanes(Svg(720, 158 + below), 68, 34, 634 / units, 84, gap=(4, 44), rx=4)
    lanes.named(0, 8, tr("host", "主机"), "bold").named(1, 8, "GPU", "bold")
    lanes.s.arrow(lanes.when(0.5), 76, lanes.when(1) + 8, 114, "muted")  # the launch
    return lanes


def timeline(calls=("stray", "innocent", "memcpy", "mem_alloc"), waits=2, kernel=4) -> str:
    """Host and GPU while the first of `calls` launches a kernel that faults after `kernel` units of time.

    calls: names in the order in which the host makes them, one unit each. waits: index of the call that waits for
    the GPU, and so the first to be told of the fault; 0 if the launch itself waits.
    """
    fault = 1 + kernel
    spans = [(i, i + 1) for i in range(waits)] + [(waits, fault)]
    spans += [(fault + i, fault + i + 1) for i in range(len(calls) - waits - 1)]
    lanes = _lanes(spans[-1][1], below=42)
    s, end = lanes.s, lanes.when(fault) - 2
    for index, (name, (start, stop)) in enumerate(zip(calls, spans)):
        cls = "c1" if index < waits else "c2" if index == waits else "c0 dash"
        label = name if index != waits else tr(f"{name} (waits)", f"{name}（等待）")
        lanes.bar(0, start, stop, cls, label)
        if index >= waits:
            s.text_to(lanes.when(stop) - 6, 26, tr("raises", "报错"), "warn")
    lanes.bar(1, 1, fault, "c3", f"kernel {calls[0]}")
    s.line(end, 110, end, 166, "warn").arrow(end, 110, end, 78, "warn")
    s.text(end, 186, tr("illegal write", "非法写入"), "warn")
    raised = calls[waits]
    later = len(calls) - waits - 1
    fails = "does the call" if later == 1 else f"do the {later} calls"
    also = tr(f", and so {fails} after it", f"，其后的 {later} 个调用也失败") if later else ""
    return figure(
        s,
        alt=tr(
            f"Timeline. The host calls {', '.join(calls)}. The kernel {calls[0]} runs on the GPU and faults after "
            f"{kernel} units of time; {raised} is waiting then and raises{also}.",
            f"时间线。主机依次调用 {'、'.join(calls)}。kernel {calls[0]} 在 GPU 上运行 {kernel} 个时间单位后出错；"
            f"此时正在等待的 {raised} 报错{also}。",
        ),
        caption=tr(
            f"The fault is in `{calls[0]}`; the call that raises is `{raised}`"
            + ("." if waits == 0 else ", the first that waits for the GPU."),
            f"错在 `{calls[0]}`，报错的却是 `{raised}`：这是第一个等待 GPU 的调用。"
            if waits
            else f"错在 `{calls[0]}`，报错的也正是 `{raised}`。",
        ),
    )


def request(lines=6, kernel=4) -> str:
    """Host and GPU after a launch: the host goes on with its `lines` while the kernel runs, `kernel` units long."""
    lanes = _lanes(lines, below=12)
    launch, after = ("c1", tr("launch", "启动")), ("c0", tr("next line", "下一行"))
    lanes.row(0, [launch, *[after] * (lines - 1)])
    lanes.bar(1, 1, 1 + kernel, "c3", "kernel")
    return figure(
        lanes.s,
        alt=tr(
            f"Timeline. The host launches a kernel and goes on with its next lines, while the kernel runs on the GPU for "
            f"{kernel} units of time.",
            f"时间线。主机启动 kernel 之后继续执行后面的各行，kernel 同时在 GPU 上运行 {kernel} 个时间单位。",
        ),
        caption=tr(
            "While the kernel runs, the host is already somewhere else in the program.",
            "kernel 还在运行，主机已经执行到后面的代码。",
        ),
    )


def red_zones(n=8, zone=3, wrote=8) -> str:
    """An array of `n` elements between red zones of `zone` elements; a kernel also wrote element `wrote`."""
    s = Svg(720, 150)
    strip = Grid(s, 20, 44, 680 / (n + 2 * zone), 38, gap=2)
    outside = ["c0"] * zone
    kinds: list[Kind] = [*outside, *(("c1", i) for i in range(n)), *outside]
    if not 0 <= wrote < n:
        kinds[zone + wrote] = "c2 solid"
    strip.row(0, kinds)
    for first, count, label in (
        (0, zone, tr("red zone", "警戒区")),
        (zone, n, tr(f"out, {n} elements", f"out，{n} 个元素")),
        (zone + n, zone, tr("red zone", "警戒区")),
    ):
        s.text(strip.corner(0, first + count / 2)[0], 32, label, "bold")
    x = strip.center(0, zone + wrote)[0]
    s.arrow(x, 112, x, 86, "warn").text(x, 132, f"out[{wrote}] = …", "warn")
    return figure(
        s,
        alt=tr(
            f"An array of {n} elements between two red zones. A write to element {wrote} lands in the zone behind it.",
            f"长度为 {n} 的数组，前后各有一段警戒区。对第 {wrote} 号元素的写入落在后面的警戒区里。",
        ),
        caption=tr(
            "To the GPU the whole strip is one legal allocation, so nothing is raised. `ct.check` compares both zones "
            "with the pattern it left there.",
            "在 GPU 看来整条都是一块合法的内存，所以什么错也不报；`ct.check` 则会核对两段警戒区里事先填好的字节。",
        ),
    )
