"""Figures of the chapter 'Environment and hello'."""

from cudatut.site.drawing import Lanes, Svg, figure, tr


def toolchain(capability: str = "9.0") -> str:
    """Draw the way of a kernel from its source to the GPU, and who reports which version.

    capability: compute capability of the GPU, "major.minor"; it names the two targets.
    """
    digits = capability.replace(".", "")
    s = Svg(720, 336)
    # The two frames: what the toolkit installs, and what the driver installs.
    s.rect(150, 30, 400, 108, "c2 hollow dash").rect(150, 202, 400, 108, "c4 hollow dash")
    toolkit = tr(
        "CUDA Toolkit: nvcc, or NVRTC as a library", "CUDA Toolkit：nvcc，或库形式的 NVRTC"
    )
    s.text_from(160, 22, toolkit, "c2 bold")
    s.text_from(160, 326, tr("driver: libcuda", "驱动：libcuda"), "c4 bold")
    s.rect(12, 60, 128, 48, cls="c1", text=tr("source\nCUDA C++", "源代码\nCUDA C++"))
    s.rect(232, 60, 120, 48, cls="c2", text=f"PTX\ncompute_{digits}")
    s.rect(418, 60, 112, 48, cls="c2", text=f"cubin\nsm_{digits}")
    s.arrow(140, 84, 232, 84, text=tr("front end", "前端"))
    s.arrow(352, 84, 418, 84, text="ptxas")

    s.rect(232, 232, 120, 48, cls="c4", text=tr("JIT compiler", "JIT 编译器"))
    s.rect(418, 232, 112, 48, cls="c4", text=tr("load\nand launch", "加载\n与启动"))
    s.arrow(292, 108, 292, 232, text=tr("at run time", "运行时"))
    s.arrow(352, 256, 418, 256, text="cubin")
    s.arrow(474, 108, 474, 232)
    s.rect(606, 226, 102, 60, "c5", f"GPU\nsm_{digits}").arrow(530, 256, 606, 256)

    # Who asks whom for a version number.
    s.rect(12, 156, 122, 28, "c0 mono", "nvcc --version", size=13).arrow(134, 162, 168, 138, "dash")
    s.rect(12, 242, 106, 28, "c0 mono", "nvidia-smi", size=13).arrow(118, 256, 150, 256, "dash")
    return figure(
        s,
        alt=tr(
            f"The toolkit turns CUDA C++ source into PTX for compute_{digits} and then, with ptxas, into a cubin for "
            f"sm_{digits}. The driver loads a cubin as it is, or compiles PTX at run time, and launches it on the GPU. "
            "nvcc --version asks the toolkit, nvidia-smi asks the driver.",
            f"CUDA Toolkit 把 CUDA C++ 源代码编译成面向 compute_{digits} 的 PTX，再由 ptxas 编译成面向 sm_{digits} 的 cubin。"
            "驱动直接加载 cubin，或在运行时编译 PTX，然后在 GPU 上启动。nvcc --version 查询 CUDA Toolkit，nvidia-smi 查询驱动。",
        ),
        caption=tr(
            "Two installations, two version numbers. Only the driver is needed to run a compiled kernel.",
            "驱动与 CUDA Toolkit 分别安装，各有各的版本号。运行已编译好的 kernel 只需要驱动。",
        ),
    )


def launch() -> str:
    """Draw the host that launches a kernel, goes on, and waits; the kernel runs meanwhile. Not to scale."""
    # So narrow that a phone shows where the host waits.
    s = Svg(500, 176)
    lanes = Lanes(s, 76, 32, 1, 76, gap=(0, 40), rx=4)
    lanes.axis(0, tr("host\n(CPU)", "主机\n（CPU）"), 494)
    lanes.axis(1, tr("device\n(GPU)", "设备\n（GPU）"), 494)
    launched, waits, ends, goes_on, last = 68, 172, 282, 304, 408
    after = tr("next lines", "后面的代码")
    lanes.bar(0, 0, launched, "c1", tr("launch", "启动")).bar(0, launched, waits, "c0", after)
    lanes.bar(0, waits, goes_on, "c4", tr("wait", "等待")).bar(0, goes_on, last, "c0", after)
    lanes.bar(1, launched + 16, ends, "c3", tr("the kernel runs", "kernel 运行"))
    s.arrow(lanes.when(launched - 20), 68, lanes.when(launched + 18), 106, "accent")
    s.arrow(lanes.when(ends), 108, lanes.when(goes_on), 70, "accent")
    s.text(lanes.when((waits + goes_on) / 2), 20, "synchronize", "mono")
    return figure(
        s,
        alt=tr(
            "The host launches the kernel and goes on with its next lines. The kernel runs on the device at the same "
            "time. The host then waits until the kernel has finished.",
            "主机启动 kernel，然后继续执行后面的代码。kernel 同时在设备上运行。主机随后等待，直到 kernel 完成。",
        ),
        caption=tr(
            "The host does not stop at the launch. It stops where it waits.",
            "启动 kernel 时，主机并不停下，等待时才停下。",
        ),
    )


def printf_buffer(lines: int = 4) -> str:
    """Draw when the `lines` lines of one launch are written, and when they appear. Times are not to scale."""
    s = Svg(720, 230)
    launch, start, end, sync, out = 14, 54, 204, 424, 544
    lanes = Lanes(s, 96, 34, 1, 70, gap=(0, 38), rx=4)
    for lane, name in enumerate((tr("host", "主机"), "GPU", tr("buffer", "缓冲区"))):
        lanes.axis(lane, name, 708)
    busy = tr("host goes on with other work", "主机继续做别的事")
    s.rect(lanes.when(launch) - 22, 34, 44, 32, "c1", tr("launch", "启动"), size=13)
    lanes.bar(0, launch + 22, sync, "c0", busy).bar(0, sync, out, "c1", "synchronize")
    lanes.bar(1, start, end, "c3", "hello")
    s.arrow(lanes.when(launch), 66, lanes.when(start), 104)
    for i in range(lines):
        x = lanes.when(start + (i + 1) * (end - start) / (lines + 1))
        s.arrow(x, 136, x, 176).rect(x - 9, 178, 18, 24, "c5", i, size=13)
    s.rect(lanes.when(end), 181, sync - end, 18, "c5 hollow dash")
    waiting = tr(
        f"{lines} lines in the buffer: nothing promises that they appear yet",
        f"{lines} 行文字在缓冲区里：此时不保证能看到",
    )
    s.text(lanes.when((end + sync) / 2), 222, waiting, "muted")
    s.arrow(lanes.when(sync), 190, lanes.when(out) - 12, 66, "accent")
    s.text_from(lanes.when(out) + 2, 96, tr("stdout", "标准输出"), "accent bold")
    return figure(
        s,
        alt=tr(
            f"The host launches the kernel and goes on. The kernel writes {lines} lines into a buffer and ends. "
            "When the host has synchronized, they have certainly been written to standard output.",
            f"主机启动 kernel 后继续运行。kernel 把 {lines} 行文字写入缓冲区后结束。"
            "主机同步完成时，这些文字必定已经写到标准输出。",
        ),
        caption=tr(
            "Device `printf` writes into a buffer; a synchronize prints what is still in it. Not to scale.",
            "设备端 `printf` 写入缓冲区；主机同步时，里面剩下的内容全部输出。未按比例绘制。",
        ),
    )
