"""Drawings of the chapter on profiling: what a copy waits for, and what each clock measures."""

from cudatut.site.drawing import Lanes, Svg, figure, tr

_LEFT, _RIGHT = 96, 16  # room for the names of the lanes
_WIDTH, _LANE = 700, 34


def memcpy_wait(kernel_ms: float, copy_ms: float, source: str = "") -> str:
    """Two timelines of launch and copy, to scale: without and with a synchronize in between.

    kernel_ms, copy_ms: durations of the kernel and of the copy itself; the launch is drawn as a mark,
    for on this scale it has no width. source: where the numbers come from, for the caption.
    """
    s, total = Svg(_WIDTH, 318), kernel_ms + copy_ms

    def lanes(y: float, title: str) -> Lanes:
        s.text_from(0, y, title, "bold")
        drawn = Lanes(s, _LEFT, y + 14, (_WIDTH - _LEFT - _RIGHT) / total, 42, gap=(0, 8), rx=4)
        drawn.name(0, tr("host", "主机"), away=12).name(1, "GPU", away=12)
        drawn.bar(1, 0, kernel_ms, "c1", f"kernel {kernel_ms:g} ms")
        drawn.bar(1, kernel_ms, total, "c2")
        s.line(_LEFT, y + 12, _LEFT, y + 24 + 2 * _LANE, "accent")
        return drawn

    charged = tr(f"memcpy returns after {total:g} ms", f"memcpy 过了 {total:g} ms 才返回")
    lanes(18, tr("Launch, then memcpy", "启动之后直接 memcpy")).bar(0, 0, total, "c2", charged)
    waits = tr(f"synchronize {kernel_ms:g} ms", f"同步 {kernel_ms:g} ms")
    below = lanes(162, tr("Launch, synchronize, memcpy", "启动、同步，再 memcpy"))
    below.bar(0, 0, kernel_ms, "c0", waits).bar(0, kernel_ms, total, "c2")
    right = _WIDTH - _RIGHT
    s.text_to(right, 268, tr(f"copy {copy_ms:g} ms", f"复制 {copy_ms:g} ms"))
    s.arrow(_LEFT, 286, right, 286, "axis")
    s.text_from(_LEFT, 306, tr("launch returns", "启动返回"), "accent")
    s.text_to(right, 306, f"{total:g} ms", "muted")
    alt = tr(
        f"Two timelines. In both the GPU runs a kernel of {kernel_ms:g} ms and then a copy of {copy_ms:g} ms. "
        f"Without a synchronize the host spends {total:g} ms inside memcpy; with one it spends {kernel_ms:g} ms "
        f"in the synchronize and {copy_ms:g} ms in memcpy.",
        f"两条时间线。GPU 上都是先执行 {kernel_ms:g} ms 的 kernel，再做 {copy_ms:g} ms 的复制。"
        f"不同步时，memcpy 过了 {total:g} ms 才返回；加上同步后，{kernel_ms:g} ms 算在同步上，memcpy 只用 {copy_ms:g} ms。",
    )
    caption = tr(
        "The GPU does the same work in both. Only the host call that does the waiting changes.",
        "两种写法里 GPU 做的事完全一样，变的只是主机在哪个调用里等待。",
    )
    return figure(s, alt=alt, caption=f"{caption}{tr(' ', '')}{source}".strip())


def clocks(launch: float = 9, delay: float = 4, kernel: float = 12, notice: float = 5) -> str:
    """What four clocks see of one launch on an idle GPU; durations in arbitrary units.

    launch: host time inside the launch call. delay: from its end until the kernel starts.
    kernel: its duration. notice: from its end until the waiting host continues.
    """
    before = 2  # an event is recorded just ahead of the launch
    called, begin = before + launch, before + launch + delay
    end, total = begin + kernel, begin + kernel + notice
    s = Svg(_WIDTH, 262)
    unit = (_WIDTH - _LEFT - _RIGHT) / total
    lanes = Lanes(s, _LEFT, 10, unit, 42, gap=(0, 8), rx=4)
    lanes.name(0, tr("host", "主机"), away=12).name(1, "GPU", away=12)
    lanes.bar(0, before, called, "c3", tr("launch call", "启动调用"))
    lanes.bar(0, called, total, "c0", tr("waits", "等待")).bar(1, begin, end, "c1", "kernel")
    for t in (begin, end):
        s.line(lanes.when(t), 52, lanes.when(t), 250, "axis dash")
    clocks = Lanes(s, _LEFT, 104, unit, 38, gap=(0, 10), rx=4)
    clocks.bar(0, before, called, "c3", tr("host, no wait", "主机，不等待"))
    clocks.bar(1, before, total, "c0", tr("host, waits", "主机，等待"))
    clocks.bar(2, 0, end, "c4", tr("events, idle GPU", "事件，GPU 空闲"))
    clocks.bar(3, begin, end, "c1", tr("events, busy GPU; ncu", "事件，GPU 忙；ncu"))
    alt = tr(
        "Timeline of one launch. The host's clock without a wait covers the launch call only; with a wait it covers "
        "call, delay, kernel and notice; events on an idle GPU cover call, delay and kernel; events on a busy GPU and "
        "ncu cover the kernel.",
        "一次启动的时间线。主机计时不等待时只量到启动调用；等待时量到调用、延迟、kernel 和返回通知；"
        "GPU 空闲时的事件量到调用、延迟和 kernel；GPU 忙时的事件和 ncu 只量到 kernel。",
    )
    caption = tr(
        "One launch, four clocks (schematic). An event is stamped when the GPU reaches it: an idle GPU stamps the first "
        "one at once and then waits for the host.",
        "同一次启动，四种计时（示意图）。GPU 执行到一个事件，就记下时间：GPU 空闲时，第一个事件的时间立刻记下，随后 GPU 等着主机交来 kernel。",
    )
    return figure(s, alt=alt, caption=caption)
