"""Drawings of machine code: the bits of an instruction, and what stands where in a main loop."""

import re

from cudatut.site import references
from cudatut.site.drawing import Grid, Lanes, Svg, figure, hue, tr

EXAMPLE = "gemm/machine_code"

# (lowest bit, number of bits) of what the compiler tells the scheduler.
CONTROL = ((105, 4), (109, 1), (110, 3), (113, 3), (116, 6), (122, 4))


def control(stall: int = 4, sets: int = 1, waits: tuple[int, ...] = (0, 3), reuse: int = 1) -> str:
    """The upper end of an instruction's 128 bits, with the values of one example."""
    names = (
        tr("cycles\nto the next", "到下一条\n的周期数"),
        tr("yield", "让出"),
        tr("sets\nscoreboard", "占用\n记分板"),
        tr("guards\noperands", "保护\n操作数"),
        tr("waits for\nscoreboards", "等待\n记分板"),
        tr("reuse", "reuse"),
    )
    mask = sum(1 << board for board in waits)
    values = (stall, 0, sets, 7, mask, reuse)
    bit, left, top = 28, 20, 44
    s = Svg(left * 2 + bit * sum(width for _, width in CONTROL), 152)
    x = left
    parts = list(zip(CONTROL, names, values, strict=True))
    for number, ((low, width), name, value) in reversed(list(enumerate(parts))):
        bits, middle = f"{value:0{width}b}", x + bit * width / 2
        span = low if width == 1 else f"{low + width - 1}–{low}"
        Grid(s, x, top, bit, 34, gap=0, rx=0).row(0, [(hue(number), one) for one in bits])
        s.text(middle, top - 10, span, "muted", size=12).text(middle, top + 60, name, size=12)
        x += bit * width
    alt = tr(
        f"Bits 105 to 125 of an instruction: {stall} cycles to the next one, sets scoreboard {sets}, waits for {', '.join(map(str, waits))}.",
        f"指令的第 105 至 125 位：{stall} 个周期后发射下一条，占用记分板 {sets}，等待记分板 {'、'.join(map(str, waits))}。",
    )
    caption = tr(
        f"What the compiler tells the scheduler. Here: the next instruction {stall} cycles later, scoreboard {sets} until the result "
        f"has arrived, and first of all wait for the boards {' and '.join(map(str, waits))} (a bit each). 7 means none.",
        f"编译器给调度器的指示。这里是：{stall} 个周期后发射下一条；结果到达之前占用记分板 {sets}；发射之前先等记分板 "
        f"{' 和 '.join(map(str, waits))}（每块一位）。7 表示没有。",
    )
    return figure(s, alt=alt, caption=caption)


def strips() -> str:
    """Where in a turn of the main loop loads, stores, barriers and other instructions stand, from the recording."""
    turns = references.facts(EXAMPLE, "strip").items()
    found = {name: re.findall(r"([a-z])(\d+)", str(text)) for name, text in turns}
    lanes = (
        ("g", "c2", tr("global", "全局内存")),
        ("s", "c3", tr("LDS", "LDS")),
        ("t", "c5", tr("STS", "STS")),
        ("b", "warn", tr("barrier", "屏障")),
        ("o", "muted", tr("other", "其他")),
    )
    left, width, step, gap = 112, 590, 13, 30
    high = step * len(lanes)
    s = Svg(left + width + 12, (high + gap) * len(found) + 4)
    for number, (name, runs) in enumerate(found.items()):
        top = number * (high + gap) + 22
        total = sum(int(length) for _, length in runs)
        s.text_from(0, top - 6, f"{name}: {total}", "bold")
        rows = Lanes(s, left, top + 2, width / total, step, gap=(0, 4), rx=0)
        for lane, (kind, cls, label) in enumerate(lanes):
            y, at = top + (lane + 0.5) * step, 0
            rows.name(lane, label, size=11, away=8)
            s.line(left, y, left + width, y, "axis")
            for letter, length in runs:
                if letter == kind:
                    rows.bar(lane, at, at + int(length), f"{cls} solid")
                at += int(length)
    alt = tr(
        "One turn of the main loop of four kernels from left to right, the places of loads, stores and barriers marked; everywhere else stand FMAs.",
        "四个 kernel 主循环的一圈，从左到右；标出了读取、写入和屏障的位置，其余都是 FMA。",
    )
    caption = tr(
        "One turn of the main loop, from left to right, with its number of instructions. Where nothing is marked stand FMAs.",
        "主循环的一圈，从左到右，名字后面是指令条数。没有标记的地方都是 FMA。",
    )
    return figure(s, alt=alt, caption=caption)
