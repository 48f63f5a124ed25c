"""Figures of the chapter on errors."""

from cudatut.site.svg import Svg, figure, tr

_LEFT, _TOP, _LANE, _BOX = 66, 34, 84, 40


def timeline(calls=("stray", "innocent", "memcpy", "mem_alloc"), waits=2, kernel=4) -> str:
    """Host and GPU while the first of `calls` launches a kernel that faults after `kernel` units of time.

    calls: names in the order in which the host makes them, one unit each. waits: index of the call that waits for
    the GPU, and so the first to be told of the fault; 0 if the launch itself waits.
    """
    fault = 1 + kernel
    spans = [(i, i + 1) for i in range(waits)] + [(waits, fault)]
    spans += [(fault + i, fault + i + 1) for i in range(len(calls) - waits - 1)]
    unit = (700 - _LEFT) / spans[-1][1]
    host, gpu = _TOP, _TOP + _LANE
    s = Svg(720, gpu + _BOX + 42)
    s.text(8, host + 25, tr("host", "主机"), "bold", "start")
    s.text(8, gpu + 25, "GPU", "bold", "start")
    for index, (name, (start, stop)) in enumerate(zip(calls, spans)):
        cls = "c1" if index < waits else "c2" if index == waits else "c0 dash"
        x = _LEFT + unit * start
        label = name if index != waits else tr(f"{name} (waits)", f"{name}（等待）")
        s.rect(x + 2, host, unit * (stop - start) - 4, _BOX, cls=cls, text=label)
        if index >= waits:
            s.text(_LEFT + unit * stop - 4, host - 8, tr("raises", "报错"), "warn", "end")
    s.rect(_LEFT + unit + 2, gpu, unit * kernel - 4, _BOX, cls="c3", text=f"kernel {calls[0]}")
    end = _LEFT + unit * fault
    s.line(end, gpu - 8, end, gpu + _BOX + 8, "warn")
    s.text(end, gpu + _BOX + 28, tr("illegal write", "非法写入"), "warn")
    s.arrow(end, gpu - 8, end, host + _BOX + 4, "warn")
    s.arrow(_LEFT + unit * 0.5, host + _BOX + 2, _LEFT + unit + 10, gpu - 4, "muted")
    raised = calls[waits]
    later = len(calls) - waits - 1
    also = (
        tr(
            f", and so {'does the call' if later == 1 else f'do the {later} calls'} after it",
            f"，其后的 {later} 个调用也失败",
        )
        if later
        else ""
    )
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
            f"错在 `{calls[0]}`，报错的却是 `{raised}`：它是第一个等待 GPU 的调用。"
            if waits
            else f"错在 `{calls[0]}`，报错的也正是 `{raised}`。",
        ),
    )


def request(lines=6, kernel=4) -> str:
    """Host and GPU after a launch: the host goes on with its `lines` while the kernel runs, `kernel` units long."""
    unit = (700 - _LEFT) / lines
    host, gpu = _TOP, _TOP + _LANE
    s = Svg(720, gpu + _BOX + 12)
    s.text(8, host + 25, tr("host", "主机"), "bold", "start")
    s.text(8, gpu + 25, "GPU", "bold", "start")
    for index in range(lines):
        name = tr("next line", "下一行") if index else tr("launch", "启动")
        s.rect(_LEFT + unit * index + 2, host, unit - 4, _BOX, "c0" if index else "c1", name)
    s.rect(_LEFT + unit + 2, gpu, unit * kernel - 4, _BOX, "c3", text="kernel")
    s.arrow(_LEFT + unit * 0.5, host + _BOX + 2, _LEFT + unit + 10, gpu - 4, "muted")
    return figure(
        s,
        alt=tr(
            f"Timeline. The host launches a kernel and goes on with its next lines, while the kernel runs on the GPU for "
            f"{kernel} units of time.",
            f"时间线。主机启动 kernel 之后继续执行后面的各行，kernel 同时在 GPU 上运行 {kernel} 个时间单位。",
        ),
        caption=tr(
            "While the kernel runs, the host is already somewhere else in the program.",
            "kernel 还在运行，主机已经执行到了程序的别处。",
        ),
    )


def red_zones(n=8, zone=3, wrote=8) -> str:
    """An array of `n` elements between red zones of `zone` elements; a kernel also wrote element `wrote`."""
    cells = n + 2 * zone
    width = 680 / cells
    s = Svg(720, 150)
    for cell in range(cells):
        index = cell - zone
        inside = 0 <= index < n
        cls = "c2 solid" if index == wrote and not inside else "c1" if inside else "c0"
        s.rect(
            20 + cell * width + 1, 44, width - 2, 36, cls=cls, text=index if inside else None, rx=2
        )
    for first, count, label in (
        (0, zone, tr("red zone", "警戒区")),
        (zone, n, tr(f"out, {n} elements", f"out，{n} 个元素")),
        (zone + n, zone, tr("red zone", "警戒区")),
    ):
        s.text(20 + (first + count / 2) * width, 32, label, "bold")
    x = 20 + (zone + wrote + 0.5) * width
    s.arrow(x, 112, x, 86, "warn")
    s.text(x, 132, f"out[{wrote}] = …", "warn")
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
