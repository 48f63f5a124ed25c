"""Figures of the chapter 'The first kernel'."""

from cudatut.site.svg import Svg, figure, tr


def memories(n: int = 1_111_111, itemsize: int = 4) -> str:
    """Draw what lives where: three arrays of n elements on the host, three on the device, and the copies."""
    nbytes = n * itemsize
    size = f"{nbytes:,} B"
    s = Svg(720, 268)
    for x, title, names, cls in (
        (8, tr("host memory (NumPy)", "主机内存（NumPy）"), ("x", "y", "out"), "c1"),
        (472, tr("device memory (GPU)", "设备内存（GPU）"), ("d_x", "d_y", "d_out"), "c3"),
    ):
        s.rect(x, 30, 240, 230, cls=f"{cls} hollow")
        s.text(x + 120, 20, title, f"{cls} bold")
        for i, name in enumerate(names):
            y = 48 + i * 70
            s.rect(x + 16, y, 208, 48, cls=cls)
            s.text(x + 28, y + 29, name, "mono", "start")
            s.text(x + 214, y + 29, f"{n:,} × {itemsize} B", "", "end")
    for i, to_device in enumerate((True, True, False)):
        y = 72 + i * 70
        ends = (240, 480) if to_device else (480, 240)
        s.arrow(
            ends[0],
            y,
            ends[1],
            y,
            cls="accent",
            text="memcpy_htod" if to_device else "memcpy_dtoh",
            size=14,
        )
        s.text(360, y + 19, size, "muted")
    total = 3 * nbytes
    return figure(
        s,
        alt=tr(
            f"The host arrays x and y are copied to d_x and d_y on the device, d_out is copied back to out: "
            f"{size} each, {total:,} B in all.",
            f"主机数组 x、y 复制到设备上的 d_x、d_y，设备上的 d_out 复制回 out：每次 {size}，共 {total:,} B。",
        ),
        caption=tr(
            f"Two memories, three copies of {size}. The kernel reaches only the arrays on the right.",
            f"两处内存，三次复制，每次 {size}。kernel 只能访问右边的数组。",
        ),
    )


def one_thread(n: int = 8) -> str:
    """Draw the loop of a single thread over n elements: one element per step, in order."""
    cell, left, top = 62, 96, 40
    s = Svg(left + n * cell + 16, 210)
    for i in range(n):
        s.text(left + (i + 0.5) * cell, 22, f"i = {i}", "muted")
    for row, name in enumerate(("x", "y", "out")):
        y = top + row * 44
        s.text(left - 14, y + 23, name, "mono", "end")
        for i in range(n):
            cls = "c3" if row == 2 else "c1"
            s.rect(left + i * cell + 3, y, cell - 6, 34, cls=cls, text=f"{name}[{i}]", size=13)
    s.text(left - 14, 190, tr("thread 0", "线程 0"), "bold", "end")
    for i in range(n):
        x = left + (i + 0.5) * cell
        s.circle(x, 185, 9, cls="c5 solid")
        if i + 1 < n:
            s.arrow(x + 11, 185, x + cell - 11, 185)
    return figure(
        s,
        alt=tr(
            f"One thread visits {n} elements one after the other; in step i it reads x[i] and y[i] and writes out[i].",
            f"一个线程依次访问 {n} 个元素；第 i 步读取 x[i] 与 y[i]，写入 out[i]。",
        ),
        caption=tr(
            f"One thread takes {n} steps for {n} elements. This launch has no other threads.",
            f"一个线程处理 {n} 个元素，要走 {n} 步。这次启动没有别的线程。",
        ),
    )


def timeline(kernel: int = 10, copy: int = 2) -> str:
    """Draw launch, blocking copy and synchronize on two lanes; kernel and copy are lengths in any unit."""
    s = Svg(720, 178)
    left, launch = 96, 60
    unit = (720 - left - launch - 110) / (kernel + copy)
    k, c = kernel * unit, copy * unit
    for y, name in ((62, tr("host", "主机")), (134, "GPU")):
        s.text(12, y + 5, name, "bold", "start")
        s.line(left - 12, y, 708, y, "axis")
    x = left + launch
    s.rect(left, 44, launch, 36, cls="c1", text=tr("launch", "启动"))
    s.rect(
        x,
        44,
        k + c,
        36,
        cls="c4",
        text=tr("memcpy_dtoh: waits, then copies", "memcpy_dtoh：先等待，再复制"),
    )
    s.rect(x, 116, k, 36, cls="c3", text="kernel")
    s.rect(x + k, 116, c, 36, cls="c5", text=tr("copy", "复制"))
    end = x + k + c
    s.rect(end, 44, 8, 36, cls="c2")
    s.arrow(end + 34, 28, end + 6, 42)
    s.text(end - 10, 22, "synchronize", "c2")
    s.text(end + 16, 98, tr("nothing left\nto wait for", "不用\n再等"), "muted", "start", 13)
    s.line(end, 80, end, 152, "axis dash")
    return figure(
        s,
        alt=tr(
            "The launch returns at once. The blocking copy waits until the kernel has finished and then copies. "
            "The synchronize after it returns immediately.",
            "启动立即返回。阻塞式复制先等 kernel 结束，再进行复制。其后的同步立即返回。",
        ),
        caption=tr(
            "The copy starts when the kernel has finished, and the host waits in the call. Not to scale.",
            "kernel 完成后复制才开始，主机在复制调用里等待。未按比例绘制。",
        ),
    )
