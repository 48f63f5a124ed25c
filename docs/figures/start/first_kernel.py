"""Figures of the chapter 'The first kernel'."""

from cudatut.site.drawing import Grid, Lanes, Svg, figure, tr


def memories(n: int = 1_111_111, itemsize: int = 4) -> str:
    """Draw what lives where: three arrays of n elements on the host, three on the device, and the copies."""
    nbytes = n * itemsize
    size = f"{nbytes:,} B"
    s = Svg(720, 268)
    for x, title, names, cls in (
        (8, tr("host memory (NumPy)", "主机内存（NumPy）"), ("x", "y", "out"), "c1"),
        (472, tr("device memory (GPU)", "设备内存（GPU）"), ("d_x", "d_y", "d_out"), "c3"),
    ):
        s.rect(x, 30, 240, 230, f"{cls} hollow").text(x + 120, 20, title, f"{cls} bold")
        for i, name in enumerate(names):
            y = 48 + i * 70
            s.rect(x + 16, y, 208, 48, cls).text_from(x + 28, y + 29, name, "mono")
            s.text_to(x + 214, y + 29, f"{n:,} × {itemsize} B")
    copies = ((240, 480, "memcpy_htod"), (240, 480, "memcpy_htod"), (480, 240, "memcpy_dtoh"))
    for i, (start, end, name) in enumerate(copies):
        y = 72 + i * 70
        s.arrow(start, y, end, y, "accent", name).text(360, y + 19, size, "muted")
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
    cell, left = 62, 96
    s = Svg(left + n * cell + 16, 210)
    rows = Grid(s, left + 3, 40, cell, 44, gap=(6, 10), rx=4, size=13)
    rows.heads((f"i = {i}" for i in range(n)), size=14, up=18)
    for row, name in enumerate(("x", "y", "out")):
        cls = "c3" if name == "out" else "c1"
        rows.name(row, name, "mono", size=14, away=17)
        rows.row(row, [(cls, f"{name}[{i}]") for i in range(n)])
    s.text_to(left - 14, 190, tr("thread 0", "线程 0"), "bold")
    for i in range(n):
        x = rows.center(0, i)[0]
        s.circle(x, 185, 9, "c5 solid")
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
    launch = 60
    lanes = Lanes(s, 96, 44, (514 - launch) / (kernel + copy), 72, gap=(0, 36), rx=4)
    lanes.axis(0, tr("host", "主机"), 708).axis(1, "GPU", 708)
    start = launch / lanes.wide
    done, end = start + kernel, start + kernel + copy
    lanes.bar(0, 0, start, "c1", tr("launch", "启动"))
    waits = tr("memcpy_dtoh: waits, then copies", "memcpy_dtoh：先等待，再复制")
    lanes.bar(0, start, end, "c4", waits)
    lanes.bar(1, start, done, "c3", "kernel").bar(1, done, end, "c5", tr("copy", "复制"))
    x = lanes.when(end)
    s.rect(x, 44, 8, 36, "c2").arrow(x + 34, 28, x + 6, 42)
    s.text(x - 10, 22, "synchronize", "c2")
    s.text_from(x + 16, 98, tr("nothing left\nto wait for", "不用\n再等"), "muted", 13)
    s.line(x, 80, x, 152, "axis dash")
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
