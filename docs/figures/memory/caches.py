"""Drawings of memory/caches: a ring of addresses that one thread walks, and the places where a line can lie."""

from collections.abc import Sequence

from cudatut.site.drawing import Grid, Svg, figure, hue, tr


def ring(order: Sequence[int] = (0, 5, 2, 7, 4, 1, 6, 3)) -> str:
    """A ring through the first words of cache lines: in each stands the line to go to next."""
    n, wide, left, top = len(order), 74, 14, 92
    s = Svg(left * 2 + n * wide, 222)
    lines = Grid(s, left, top, wide, 44, gap=8)
    following = {line: order[(k + 1) % n] for k, line in enumerate(order)}
    for line in range(n):
        lines.box(0, line, "c1 solid" if line == order[0] else "c1", following[line])
        s.text(
            lines.center(0, line)[0],
            top + 56,
            tr(f"line {line}", f"第 {line} 行"),
            "muted",
            size=12,
        )
    for k, line in enumerate(order[:4]):
        goal = following[line]
        (x1, y1), (x2, _) = lines.center(0, line), lines.center(0, goal)
        side = -1 if k % 2 == 0 else 1
        out = y1 + side * 20
        far = top - 20 - 16 * (k // 2) if side < 0 else top + 76 + 26 * (k // 2)
        s.polyline(
            [(x1 + 6, out + (24 if side > 0 else 0)), (x1 + 6, far), (x2 - 6, far)], "accent"
        )
        s.arrow(x2 - 6, far, x2 - 6, out + (24 if side > 0 else 0), "accent")
        s.text(
            (x1 + x2) / 2,
            far + (-5 if side < 0 else 15),
            tr(f"load {k + 1}", f"第 {k + 1} 次读取"),
            "muted",
            size=12,
        )
    alt = tr(
        f"{n} cache lines in a row. In each stands the number of the line to go to next, so that a walk goes through "
        f"them in the order {', '.join(map(str, order))}, and back to {order[0]}.",
        f"{n} 个缓存行排成一行，每行里写着下一步去哪一行，因此依次经过 {'、'.join(map(str, order))}，再回到 {order[0]}。",
    )
    caption = tr(
        "In each line stands where to go next. The first four loads of the walk; in the program an address stands there, "
        "not a number.",
        "每一行里写着下一步去哪里。图中画出了头四次读取；程序里写的是地址，而不是编号。",
    )
    return figure(s, alt=alt, caption=caption)


def places(sms: int = 4) -> str:
    """Where a line can lie for an SM: its L1, two halves of L2, the memory; and another SM of the cluster."""
    wide, left = 132, 18
    s = Svg(left * 2 + sms * wide, 300)
    right = left + sms * wide - 12
    for sm in range(sms):
        x = left + sm * wide
        s.rect(x, 14, wide - 12, 76, "c0", rx=6)
        s.text(x + (wide - 12) / 2, 34, f"SM {sm}", "bold")
        words = tr("L1 and\nshared memory", "L1 与\n共享内存")
        s.rect(x + 6, 42, wide - 24, 40, hue(0), words, size=11)
        s.line(x + (wide - 12) / 2, 90, x + (wide - 12) / 2, 122)
    half = (right - left - 30) / 2
    for k, name in enumerate(
        (tr("half of L2", "L2 的一半"), tr("other half of L2", "L2 的另一半"))
    ):
        begin = left + k * (half + 30)
        s.rect(begin, 122, half, 52, hue(1), name)
        s.line(begin + half / 2, 174, begin + half / 2, 214)
    s.line(left + half, 148, left + half + 30, 148, "accent")
    s.rect(left, 214, right - left, 46, hue(2), tr("memory", "显存"))
    s.text(
        left,
        286,
        tr("Every address is translated on the way.", "每个地址在途中都要翻译。"),
        "muted",
        "start",
    )
    alt = tr(
        f"{sms} SMs, each with one memory for L1 and shared memory. Below them L2 in two halves, which are joined; below "
        "that the memory of the GPU.",
        f"{sms} 个 SM，各有一块供 L1 和共享内存使用的存储器；下面是 L2，分成相连的两半；再下面是显存。",
    )
    caption = tr(
        "Places where a load can find its data on an H200. NVIDIA draws the L2 of this chip in two halves; "
        "below we measure what follows from it.",
        "在 H200 上，一次读取可能在哪里找到数据。NVIDIA 的图把这块芯片的 L2 画成两半，后面会测量这带来什么影响。",
    )
    return figure(s, alt=alt, caption=caption)
