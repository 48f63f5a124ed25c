"""Drawings of memory/moving: the places where bytes lie, and the ways between them."""

from cudatut.site.drawing import Svg, figure, tr


def places(blocks: int = 2) -> str:
    """The host's memory, the GPU's memory and its SMs, with the ways between them. blocks: SMs that are drawn."""
    s = Svg(712, 322)
    s.rect(8, 28, 196, 286, "c0")
    s.rect(296, 28, 408, 286, "c0")
    s.text(106, 20, tr("memory of the host", "主机内存"), "muted")
    s.text(500, 20, "GPU", "muted")
    s.text(250, 20, tr("link", "链路"), "muted")
    s.rect(24, 52, 164, 44, "c2", tr("pageable array", "可分页的数组"))
    s.rect(24, 126, 164, 44, "c1", tr("pinned array", "锁页的数组"))
    s.rect(24, 200, 164, 44, "c2", tr("arguments", "kernel 参数"))
    s.rect(312, 44, 150, 206, "c3")
    s.text(387, 64, tr("device memory", "显存"), "muted", size=12)
    s.rect(328, 76, 118, 50, "c1", tr("array", "数组"))
    s.rect(328, 184, 118, 50, "c1", tr("array", "数组"))
    s.arrow(387, 128, 387, 182, "accent")
    s.text_from(394, 160, tr("copy", "复制"), "accent", size=12)
    s.rect(484, 44, 56, 206, "c2", "L2")
    s.arrow(448, 101, 482, 101)
    high = 206 / blocks - 14
    for block in range(blocks):
        y = 44 + block * (206 + 14) / blocks
        inside = tr("SM: shared\nmemory", "SM：\n共享内存")
        s.rect(574, y, 116, high, "c1", inside, size=12)
        s.arrow(542, y + high / 2, 572, y + high / 2)
        if block:
            s.arrow(632, y - 12, 632, y - 1, "accent")
    for y, to in ((74, 92), (148, 110)):
        s.arrow(190, y, 326, to, "accent")
    s.text(250, 72, tr("copies", "复制"), "accent", size=12)
    s.polyline([(190, 222), (226, 222), (226, 284), (632, 284)], "warn")
    s.polyline([(190, 156), (240, 156), (240, 284)], "warn")
    s.arrow(632, 284, 632, 252, "warn")
    s.text(430, 278, tr("zero-copy, arguments", "零拷贝、kernel 参数"), "warn", size=12)
    alt = tr(
        "Left the memory of the host with a pageable array, a pinned array and the arguments of a kernel; right the GPU "
        "with two arrays in device memory, L2, and SMs with shared memory. Copies go from both arrays of the host to "
        "device memory, and from one array there to another. Zero-copy and arguments lead from the host to an SM. SMs "
        "read device memory through L2, and another SM's shared memory.",
        "左边是主机内存，有可分页的数组、锁页的数组和 kernel 的参数；右边是 GPU，显存里有两个数组，还有 L2 和带共享内存的 SM。"
        "主机的两个数组都可以复制到显存，显存里也可以从一个数组复制到另一个。零拷贝和参数从主机直接到 SM。SM 经 L2 读显存，"
        "也能读另一个 SM 的共享内存。",
    )
    caption = tr(
        "Ways that end at an array store bytes; ways that end at an SM bring them to a kernel.",
        "终点是数组的，把字节存下来；终点是 SM 的，把字节送到 kernel。",
    )
    return figure(s, alt=alt, caption=caption)
