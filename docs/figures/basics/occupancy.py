"""Drawings of occupancy: what the blocks of an SM use up, and occupancy over the size of a block."""

from cudatut.site import references
from cudatut.site.drawing import Axes, Grid, Svg, figure, hue, linear, tr

EXAMPLE = "basics/occupancy"


def _sm() -> tuple[str, dict[str, int]]:
    """The compute capability of the recorded GPU, and what one of its SMs has."""
    of_gpu = references.load(EXAMPLE).metadata["gpu"]["compute_capability"]
    return of_gpu, references.facts(EXAMPLE, "here")


def room(sm: dict[str, int], threads: int, registers: int, shared: int) -> dict[str, int]:
    """How many blocks each resource of an SM has room for: the chapter's own function, and a test compares both."""
    warps, per_warp, per_block = _needs(sm, threads, registers, shared)
    return {
        "warps": sm["warps"] // warps,
        "blocks": sm["blocks"],
        "registers": 4 * (sm["registers"] // 4 // per_warp) // warps,
        "shared memory": sm["shared memory"] // max(per_block, 1),
    }


def _needs(sm: dict[str, int], threads: int, registers: int, shared: int) -> tuple[int, int, int]:
    """Warps of a block, registers of a warp, bytes of shared memory of a block."""
    bytes_of_block = shared + sm["reserved per block"]
    return -(-threads // 32), 256 * -(-32 * registers // 256), 128 * -(-bytes_of_block // 128)


def uses(threads: int, registers: int, shared: int, title: str = "") -> str:
    """One bar per resource of an SM: the part that each resident block takes, and what is left over."""
    gpu, sm = _sm()
    allowed = room(sm, threads, registers, shared)
    warps, per_warp, per_block = _needs(sm, threads, registers, shared)
    blocks = min(allowed.values())
    occupancy = blocks * warps / sm["warps"]
    bars = (
        ("warps", tr("warps", "线程束"), warps, ""),
        ("blocks", tr("blocks", "线程块"), 1, ""),
        ("registers", tr("registers", "寄存器"), warps * per_warp, ""),
        ("shared memory", tr("shared memory", "共享内存"), per_block, " B"),
    )
    left, width, row = 106, 215, 46  # so narrow that a phone shows the numbers
    s = Svg(left + width + 138, row * len(bars) + 12)
    for line, (key, name, part, unit) in enumerate(bars):
        y, whole = 6 + row * line, sm[key]
        s.text_to(left - 10, y + 22, name).rect(left, y, width, 32, "hollow dash muted", rx=0)
        of_one = Grid(s, left, y, width * part / whole, 32, gap=0, rx=0)
        of_one.row(0, [hue(block) for block in range(blocks)])
        s.text_from(left + width + 10, y + 14, f"{part * blocks:,} / {whole:,}{unit}", size=13)
        words = tr(f"room for {allowed[key]}", f"放得下 {allowed[key]} 个")
        cls = "warn" if allowed[key] == blocks else "muted"
        s.text_from(left + width + 10, y + 31, words, cls, 13)
    tight = [name for key, name, *_ in bars if allowed[key] == blocks]
    alt = tr(
        f"{blocks} blocks of {threads} threads with {registers} registers and {shared} B on an SM of compute capability {gpu}; "
        f"the limit is {' and '.join(tight)}; occupancy {occupancy:.0%}.",
        f"计算能力 {gpu} 的一个 SM 上有 {blocks} 个线程块，每块 {threads} 个线程、每线程 {registers} 个寄存器、{shared} B 共享内存；"
        f"限制来自{'、'.join(tight)}；占用率 {occupancy:.0%}。",
    )
    caption = tr(
        f"{title + ': ' if title else ''}{threads} threads, {registers} registers, {shared} B, compute capability {gpu}. "
        f"Each color is one block; the dashed part is left over. The number in red is the smallest: it decides. Occupancy {occupancy:.0%}.",
        f"{title + '：' if title else ''}{threads} 个线程，{registers} 个寄存器，{shared} B，计算能力 {gpu}。"
        f"每种颜色是一个线程块；虚线部分是剩余。红色的数字最小，决定放得下几个线程块。占用率 {occupancy:.0%}。",
    )
    return figure(s, alt=alt, caption=caption)


def by_block(registers: tuple[int, ...] = (32, 48, 80, 128)) -> str:
    """Occupancy over threads per block, one line per number of registers, without shared memory."""
    gpu, sm = _sm()
    left, right, top, bottom = 56, 560, 16, 236
    s = Svg(right + 140, bottom + 50)
    field = Axes(s, linear(0, 1024), linear(0, 100), left, right, top, bottom, size=14)
    field.y_ticks((0, 25, 50, 75, 100), unit=" %").x_ticks(range(0, 1025, 128), cls=None)
    field.names(tr("threads per block", "每块线程数"))
    peaks = []
    for color, count in enumerate(registers, 1):
        points = []
        for threads in range(32, 1025, 32):
            blocks = min(room(sm, threads, count, 0).values())
            points.append((threads, 100 * blocks * (threads // 32) / sm["warps"]))
        field.curve(points, f"c{color}")
        for threads, percent in points:
            field.dot(threads, percent, f"c{color} solid", 2.6)
        y = top + 24 * color
        s.line(right + 14, y - 5, right + 40, y - 5, f"c{color}")
        s.text_from(right + 46, y, tr(f"{count} registers", f"{count} 个寄存器"))
        peaks.append(f"{count}: {max(percent for _, percent in points):.0f}%")
    alt = tr(
        f"Occupancy over block size on compute capability {gpu}; the highest value per number of registers is {', '.join(peaks)}. "
        "Where one block fewer fits, a line drops.",
        f"计算能力 {gpu} 上占用率随线程块大小的变化；各寄存器数的最高值为 {'，'.join(peaks)}。每少放下一个线程块，折线就下降一截。",
    )
    caption = tr(
        f"Computed by the function of this chapter for compute capability {gpu}, without shared memory. At each drop one block fewer fits.",
        f"由本章的函数算出：计算能力 {gpu}，不用共享内存。每次下降都表示少放下一个线程块。",
    )
    return figure(s, alt=alt, caption=caption)
