"""Figures of the chapter 'Environment and hello'."""

from cudatut.site.svg import Svg, figure, tr


def toolchain(capability: str = "9.0") -> str:
    """Draw the way of a kernel from its source to the GPU, and who reports which version.

    capability: compute capability of the GPU, "major.minor"; it names the two targets.
    """
    digits = capability.replace(".", "")
    s = Svg(720, 330)
    # The two frames: what the toolkit installs, and what the driver installs.
    s.rect(150, 30, 400, 108, cls="c2 hollow dash")
    s.text(
        160,
        22,
        tr("CUDA Toolkit: nvcc, or NVRTC as a library", "CUDA Toolkit：nvcc，或库形式的 NVRTC"),
        "c2 bold",
        "start",
    )
    s.rect(150, 202, 400, 108, cls="c4 hollow dash")
    s.text(
        160,
        326,
        tr("driver: libcuda", "驱动：libcuda"),
        "c4 bold",
        "start",
    )

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
    s.rect(606, 226, 102, 60, cls="c5", text=f"GPU\nsm_{digits}")
    s.arrow(530, 256, 606, 256)

    # Who asks whom for a version number.
    s.rect(12, 156, 122, 28, cls="c0 mono", text="nvcc --version", size=13)
    s.arrow(134, 162, 168, 138, cls="dash")
    s.rect(12, 242, 106, 28, cls="c0 mono", text="nvidia-smi", size=13)
    s.arrow(118, 256, 150, 256, cls="dash")
    return figure(
        s,
        alt=tr(
            f"The toolkit turns CUDA C++ source into PTX for compute_{digits} and then, with ptxas, into a cubin for "
            f"sm_{digits}. The driver loads a cubin as it is, or compiles PTX at run time, and launches it on the GPU. "
            "nvcc --version asks the toolkit, nvidia-smi asks the driver.",
            f"CUDA Toolkit 把 CUDA C++ 源代码编译成面向 compute_{digits} 的 PTX，再由 ptxas 编译成面向 sm_{digits} 的 cubin。"
            "驱动直接加载 cubin，或在运行时编译 PTX，然后在 GPU 上启动。nvcc --version 询问 CUDA Toolkit，nvidia-smi 询问驱动。",
        ),
        caption=tr(
            "Two installations, two version numbers. Only the driver is needed to run a compiled kernel.",
            "两套安装，两个版本号。运行已编译好的 kernel 只需要驱动。",
        ),
    )


def launch() -> str:
    """Draw the host that launches a kernel, goes on, and waits; the kernel runs meanwhile. Not to scale."""
    s = Svg(720, 176)
    left, start, end, wait = 96, 200, 520, 380
    for y, name in (
        (50, tr("host\n(CPU)", "主机\n（CPU）")),
        (126, tr("device\n(GPU)", "设备\n（GPU）")),
    ):
        s.text(12, y - 4, name, "bold", "start")
        s.line(left - 12, y, 708, y, "axis")
    s.rect(left, 32, 84, 36, cls="c1", text=tr("launch", "启动"))
    s.rect(left + 84, 32, wait - left - 84, 36, cls="c0", text=tr("next lines", "后面的代码"))
    s.rect(wait, 32, end + 24 - wait, 36, cls="c4", text=tr("wait", "等待"))
    s.rect(end + 24, 32, 150, 36, cls="c0", text=tr("next lines", "后面的代码"))
    s.rect(start, 108, end - start, 36, cls="c3", text=tr("the kernel runs", "kernel 运行"))
    s.arrow(left + 60, 68, start, 106, "accent")
    s.arrow(end, 108, end + 24, 70, "accent")
    s.text(wait + 82, 20, "synchronize", "mono", size=13)
    return figure(
        s,
        alt=tr(
            "The host launches the kernel and goes on with its next lines. The kernel runs on the device at the same "
            "time. The host then waits until the kernel has finished.",
            "主机启动 kernel，然后继续执行后面的代码。kernel 同时在设备上运行。主机随后等待，直到 kernel 完成。",
        ),
        caption=tr(
            "The host does not stop at the launch. It stops where it waits.",
            "主机在启动时并不停下，只在等待时停下。",
        ),
    )


def printf_buffer(lines: int = 4) -> str:
    """Draw when the `lines` lines of one launch are written, and when they appear. Times are not to scale."""
    s = Svg(720, 230)
    launch, start, end, sync, out = 110, 150, 300, 520, 640
    for y, name in ((50, tr("host", "主机")), (120, "GPU"), (190, tr("buffer", "缓冲区"))):
        s.text(12, y + 5, name, "bold", "start")
        s.line(84, y, 708, y, "axis")
    s.rect(launch - 22, 34, 44, 32, cls="c1", text=tr("launch", "启动"), size=13)
    s.rect(
        launch + 22,
        34,
        sync - launch - 22,
        32,
        cls="c0",
        text=tr("host goes on with other work", "主机继续做别的事"),
    )
    s.rect(sync, 34, out - sync, 32, cls="c1", text="synchronize")
    s.arrow(launch, 66, start, 104)
    s.rect(start, 104, end - start, 32, cls="c3", text="hello")
    step = (end - start) / (lines + 1)
    width = 18
    for i in range(lines):
        x = start + (i + 1) * step
        s.arrow(x, 136, x, 176)
        s.rect(x - width / 2, 178, width, 24, cls="c5", text=i, size=13)
    s.rect(end, 181, sync - end, 18, cls="c5 hollow dash")
    s.text(
        (end + sync) / 2,
        222,
        tr(
            f"{lines} lines in the buffer: nothing promises that they appear yet",
            f"{lines} 行文字在缓冲区里：此时不保证能看到",
        ),
        "muted",
    )
    s.arrow(sync, 190, out - 12, 66, cls="accent")
    s.text(out + 2, 96, tr("stdout", "标准输出"), "accent bold", "start")
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
