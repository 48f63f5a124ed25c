"""Drawings of primitives/fusion: GELU and what its approximation leaves out; the passes of separate kernels and of one."""

import math

from cudatut.site.drawing import Axes, Svg, figure, linear, tr


def exact(x: float) -> float:
    return 0.5 * x * math.erfc(-x / math.sqrt(2))


def by_tanh(x: float, c: float = 0.044715) -> float:
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + c * x**3)))


def difference(left: float = -5, right: float = 5, points: int = 201) -> str:
    """GELU on the left; by tanh minus by erf on the right, in units of 10^-4."""
    xs = [left + (right - left) * i / (points - 1) for i in range(points)]
    off = [1e4 * (by_tanh(x) - exact(x)) for x in xs]
    high = math.ceil(max(map(abs, off)))
    s = Svg(712, 268)
    curve = Axes(s, linear(left, right), linear(-1, 5), 44, 330, 30, 208)
    curve.y_ticks((-1, 0, 1, 2, 3, 4, 5)).x_ticks((-4, -2, 0, 2, 4)).names("x", "GELU(x)")
    curve.curve([(x, exact(x)) for x in xs], "accent")
    error = Axes(s, linear(left, right), linear(-high, high), 410, 700, 30, 208)
    error.y_ticks(range(-high // 2 * 2 + 2, high, 2)).x_ticks((-4, -2, 0, 2, 4)).names("x")
    s.text(390, 14, tr("by tanh − by erf, 10⁻⁴", "tanh 式 − erf 式，10⁻⁴"), "muted", "start", 12)
    error.curve(list(zip(xs, off)), "warn")
    worst = max(off, key=abs)
    at = abs(xs[off.index(worst)])
    alt = tr(
        f"Left: GELU, which is close to 0 for negative x and close to x for positive x. Right: the approximation by tanh minus GELU. It is 0 at 0, and largest, {abs(worst):.1f} times ten to the minus 4, near x = {at:.1f} and x = {-at:.1f}.",
        f"左边：GELU，x 为负时接近 0，x 为正时接近 x。右边：tanh 近似减去 GELU，在 0 处为 0，在 x = {at:.1f} 与 x = {-at:.1f} 附近最大，为 {abs(worst):.1f}×10⁻⁴。",
    )
    caption = tr(
        "GELU, and by how much the formula with tanh differs from it.",
        "GELU，以及用 tanh 的公式与它相差多少。",
    )
    return figure(s, alt=alt, caption=caption)


def passes(operations: tuple[str, ...] = ("+ bias", "GELU", "+ residual")) -> str:
    """Which arrays each kernel reads and writes: a kernel for each operation, then one for all."""
    # What an operation reads besides the result of the last one, where that is as large as x.
    more = ["residual" if "residual" in one else None for one in operations]
    wide, gap, left, top = 118, 92, 76, 64
    s = Svg(left + len(operations) * (wide + gap) + 40, 320)

    def pass_of(x1: float, x2: float, y: float, cls: str = "accent") -> None:
        s.arrow(x1, y, x2, y, cls)

    count = 0
    s.text(8, 22, tr("a kernel for each operation", "每步运算一个 kernel"), "muted", "start")
    for i, name in enumerate(operations):
        x = left + i * (wide + gap)
        s.rect(x, top, wide, 46, "c1", name)
        pass_of(x - 58, x - 4, top + 23)
        s.text(x - 44, top + 14, "x" if i == 0 else "t", "muted", size=13)
        count += 1
        if more[i]:
            s.arrow(x + wide / 2, top + 84, x + wide / 2, top + 50, "accent")
            s.text(x + wide / 2, top + 100, more[i], "muted", size=13)
            count += 1
        pass_of(x + wide + 4, x + wide + 30, top + 23)
        if i < len(operations) - 1:
            s.text(x + wide + 16, top + 14, "t", "muted", size=13)
        count += 1
    end = left + (len(operations) - 1) * (wide + gap) + wide
    s.text(end + 42, top + 28, "out", "muted", size=13)
    low = 222
    s.text(8, 204, tr("one kernel", "一个 kernel"), "muted", "start")
    s.rect(left, low, end - left, 46, "c2", "  →  ".join(operations))
    pass_of(left - 58, left - 4, low + 23)
    s.text(left - 44, low + 14, "x", "muted", size=13)
    pass_of(end + 4, end + 30, low + 23)
    s.text(end + 42, low + 28, "out", "muted", size=13)
    together = 2
    for i, one in enumerate(more):
        if one:
            middle = left + i * (wide + gap) + wide / 2
            s.arrow(middle, low + 80, middle, low + 50, "accent")
            s.text(middle + 8, low + 78, one, "muted", "start", 13)
            together += 1
    s.text(
        8,
        low + 84,
        tr(
            f"{count} passes over the memory, and {together}",
            f"显存经过 {count} 遍，和 {together} 遍",
        ),
        "muted",
        "start",
        13,
    )
    alt = tr(
        f"Above, three kernels: each reads x or the array t from memory and writes its result back, the last also reads the residual: {count} passes. Below, one kernel reads x and the residual and writes out: {together} passes.",
        f"上面是三个 kernel：每个都从显存读 x 或数组 t，再把结果写回去，最后一个还要读残差：共 {count} 遍。下面是一个 kernel，读 x 和残差，写出 out：共 {together} 遍。",
    )
    caption = tr(
        "Each arrow is a pass over an array as large as x. The bias is one row, and stays in the cache.",
        "每个箭头是把与 x 一样大的数组过一遍。偏置只有一行，留在缓存里。",
    )
    return figure(s, alt=alt, caption=caption)
