"""Drawings of pinned memory: the ways from the host's memory to the GPU, and a packet on the link."""

from cudatut.site.drawing import Svg, figure, tr


def ways() -> str:
    """Three ways of the same bytes: staged by the driver, copied from pinned memory, read by a kernel where they lie."""
    s = Svg(660, 276)
    link, gpu, top, pitch, high = 372, 452, 44, 78, 46
    s.rect(8, 26, link - 28, 244, "c0")
    s.rect(gpu - 8, 26, 212, 244, "c0")
    s.text(8 + (link - 28) / 2, 18, tr("memory of the host", "主机内存"), "muted")
    s.text(gpu + 98, 18, tr("GPU", "GPU"), "muted")
    s.text((link + gpu) / 2 - 12, 18, tr("link", "链路"), "muted")
    rows = (
        (
            tr("pageable array", "可分页的数组"),
            tr("device memory", "显存"),
            tr("copy engine", "复制引擎"),
        ),
        (
            tr("pinned array", "锁页的数组"),
            tr("device memory", "显存"),
            tr("copy engine", "复制引擎"),
        ),
        (tr("pinned array", "锁页的数组"), tr("kernel", "kernel"), tr("zero-copy", "零拷贝")),
    )
    for number, (source, target, how) in enumerate(rows):
        y = top + number * pitch
        middle = y + high / 2
        s.rect(22, y, 118, high, "c2" if number == 0 else "c1", source)
        s.rect(gpu + 6, y, 184, high, "c3", target)
        if number == 0:
            s.arrow(142, middle, 222, middle, "warn", tr("processor", "处理器"), 12)
            s.rect(
                224, y, 110, high, "c1", tr("pinned, of\nthe driver", "驱动的\n锁页内存"), size=12
            )
        s.arrow(336 if number == 0 else 142, middle, gpu + 4, middle, "accent")
        s.text((link + gpu) / 2 - 12, middle - 8, how, "accent", size=12)
    alt = tr(
        "Three rows. A pageable array is copied by the processor into pinned memory of the driver, and from there by the copy engine over the link into device memory. A pinned array goes over the link in one step. In zero-copy, a kernel reads the pinned array over the link.",
        "三行。可分页的数组先由处理器复制到驱动的锁页内存，再由复制引擎经链路传到显存；锁页的数组一步经链路传到显存；零拷贝时，kernel 经链路直接读取锁页的数组。",
    )
    caption = tr(
        "Only the first way needs the processor for every byte.",
        "只有第一种方式，每个字节都要处理器搬一次。",
    )
    return figure(s, alt=alt, caption=caption)


def packet(payload: int = 256, header: int = 24) -> str:
    """A packet on the link, to scale: its header and checks, and its data; in bytes."""
    s, scale, left = Svg(660, 92), 600 / (payload + header), 30
    s.rect(left, 22, header * scale, 40, "c2", rx=0)
    s.rect(
        left + header * scale,
        22,
        payload * scale,
        40,
        "c1",
        tr(f"data: {payload} bytes", f"数据：{payload} 字节"),
        rx=0,
    )
    s.text_from(
        left, 82, tr(f"header and checks: {header} bytes", f"包头和校验：{header} 字节"), "muted"
    )
    share = payload / (payload + header)
    alt = tr(
        f"A packet of {payload + header} bytes: {header} of header and checks, {payload} of data.",
        f"一个包共 {payload + header} 字节：包头和校验 {header} 字节，数据 {payload} 字节。",
    )
    caption = tr(
        f"With {payload} bytes of data in each packet, {share:.2f} of what the link carries is data.",
        f"每个包带 {payload} 字节数据时，链路传输的内容里数据占 {share:.2f}。",
    )
    return figure(s, alt=alt, caption=caption)
