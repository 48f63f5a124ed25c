"""Drawings of the chapter on profiling: what a copy waits for, and what each clock measures."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr

_LEFT, _RIGHT = 96, 16  # room for the names of the lanes
_LANE = 34


def memcpy_wait(kernel_ms: float, copy_ms: float, source: str = "") -> str:
    """Two timelines of launch and copy, to scale: without and with a synchronize in between.

    kernel_ms, copy_ms: durations of the kernel and of the copy itself; the launch is drawn as a mark,
    for on this scale it has no width. source: where the numbers come from, for the caption.
    """
    width = 700
    s = Svg(width, 318)
    scale = (width - _LEFT - _RIGHT) / (kernel_ms + copy_ms)
    end = _LEFT + scale * kernel_ms
    host, device = tr("host", "主机"), tr("GPU", "GPU")
    kernel_text = tr(f"kernel {kernel_ms:g} ms", f"kernel {kernel_ms:g} ms")
    copy = tr("copy", "复制")

    def lanes(y: float, title: str) -> None:
        s.text(0, y, title, "bold", "start")
        s.text(_LEFT - 12, y + 14 + _LANE * 0.65, host, "muted", "end")
        s.text(_LEFT - 12, y + 22 + _LANE * 1.65, device, "muted", "end")
        s.rect(_LEFT, y + 22 + _LANE, scale * kernel_ms, _LANE, "c1", kernel_text)
        s.rect(end, y + 22 + _LANE, scale * copy_ms, _LANE, "c2")
        s.line(_LEFT, y + 12, _LEFT, y + 24 + 2 * _LANE, "accent")

    total = kernel_ms + copy_ms
    lanes(18, tr("Launch, then memcpy", "启动之后直接 memcpy"))
    charged = tr(f"memcpy returns after {total:g} ms", f"memcpy 过了 {total:g} ms 才返回")
    s.rect(_LEFT, 32, scale * total, _LANE, "c2", charged)
    lanes(162, tr("Launch, synchronize, memcpy", "启动、同步，再 memcpy"))
    waits = tr(f"synchronize {kernel_ms:g} ms", f"同步 {kernel_ms:g} ms")
    s.rect(_LEFT, 176, scale * kernel_ms, _LANE, "c0", waits)
    s.rect(end, 176, scale * copy_ms, _LANE, "c2")
    s.text(width - _RIGHT, 268, f"{copy} {copy_ms:g} ms", "", "end")
    s.arrow(_LEFT, 286, _LEFT + scale * total, 286, "axis")
    s.text(_LEFT, 306, tr("launch returns", "启动返回"), "accent", "start")
    s.text(width - _RIGHT, 306, f"{total:g} ms", "muted", "end")
    alt = tr(
        f"Two timelines. In both the GPU runs a kernel of {kernel_ms:g} ms and then a copy of {copy_ms:g} ms. "
        f"Without a synchronize the host spends {total:g} ms inside memcpy; with one it spends {kernel_ms:g} ms "
        f"in the synchronize and {copy_ms:g} ms in memcpy.",
        f"两条时间线。GPU 上都是先执行 {kernel_ms:g} ms 的 kernel，再做 {copy_ms:g} ms 的复制。"
        f"不同步时，主机在 memcpy 里停留 {total:g} ms；加上同步后，{kernel_ms:g} ms 记在同步上，memcpy 只占 {copy_ms:g} ms。",
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
    width = 700
    before = 2  # an event is recorded just ahead of the launch
    total = before + launch + delay + kernel + notice
    scale = (width - _LEFT - _RIGHT) / total

    def x(t: float) -> float:
        return _LEFT + scale * t

    begin = before + launch + delay
    end = begin + kernel
    s = Svg(width, 262)
    s.text(_LEFT - 12, 33, tr("host", "主机"), "muted", "end")
    s.text(_LEFT - 12, 75, "GPU", "muted", "end")
    s.rect(x(before), 10, scale * launch, _LANE, "c3", tr("launch call", "启动调用"))
    s.rect(
        x(before + launch), 10, scale * (total - before - launch), _LANE, "c0", tr("waits", "等待")
    )
    s.rect(x(begin), 52, scale * kernel, _LANE, "c1", tr("kernel", "kernel"))
    for t in (begin, end):
        s.line(x(t), 52, x(t), 250, "axis dash")
    spans = [
        (before, before + launch, tr("host, no wait", "主机，不等待"), "c3"),
        (before, total, tr("host, waits", "主机，等待"), "c0"),
        (0, end, tr("events, idle GPU", "事件，GPU 空闲"), "c4"),
        (begin, end, tr("events, busy GPU; ncu", "事件，GPU 忙；ncu"), "c1"),
    ]
    for row, (start, stop, name, cls) in enumerate(spans):
        y = 104 + 38 * row
        s.rect(x(start), y, scale * (stop - start), 28, cls, name)
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
        "同一次启动，四种计时（示意图）。事件在 GPU 执行到它时打上时间戳：GPU 空闲时，第一个事件立刻打戳，随后 GPU 等着主机把 kernel 交上来。",
    )
    return figure(s, alt=alt, caption=caption)
