"""Figures of the chapter on precision: the bits of six types, and an adder that lines its numbers up."""

import math

from cudatut.site.drawing import Grid, Svg, figure, legend, tr

# Name: bits of the exponent, bits of the mantissa.
TYPES = {
    "fp32": (8, 23),
    "TF32": (8, 10),
    "bf16": (8, 7),
    "fp16": (5, 10),
    "e5m2": (5, 2),
    "e4m3": (4, 3),
}


def _bits(x: float, exponent: int, mantissa: int) -> tuple[str, float]:
    """A positive number of middling size, rounded to nearest: its bits and its value."""
    power = math.floor(math.log2(x))
    steps = round(x / 2.0 ** (power - mantissa))
    if steps == 2 ** (mantissa + 1):
        power, steps = power + 1, steps // 2
    word = (power + 2 ** (exponent - 1) - 1) << mantissa | steps - 2**mantissa
    return f"{word:0{1 + exponent + mantissa}b}", steps * 2.0 ** (power - mantissa)


def fields(x: float = 1 / 3) -> str:
    """One number in each type: sign, exponent, mantissa, and what the rounded number is."""
    left, top, end = 62, 44, 62 + 32 * 15
    s = Svg(end + 130, top + len(TYPES) * 38 + 6)
    s.text_from(end + 14, 22, tr("value", "值"), "muted", 12)
    parts = (
        ("c5", tr("sign", "符号")),
        ("c3", tr("exponent", "指数")),
        ("c1", tr("mantissa", "尾数")),
    )
    legend(s, left, 8, parts, size=12, wide=14)
    rows = Grid(s, left, top, 15, 38, gap=(1, 16), rx=0, size=11)
    values = []
    for number, (name, (exponent, mantissa)) in enumerate(TYPES.items()):
        word, value = _bits(x, exponent, mantissa)
        values.append(f"{name} {value:.7g}")
        kinds = ["c5", *["c3"] * exponent, *["c1"] * mantissa]
        rows.name(number, name, "bold", 14).row(number, zip(kinds, word))
        rows.note(number, 32, f"{value:.7g}", "mono", 12, away=14)
    alt = tr(
        f"The bits of {x:.7g} in six types: a sign, then exponent and mantissa. Rounded it is {', '.join(values)}.",
        f"{x:.7g} 在六种类型里的位：符号、指数、尾数。舍入之后：{'，'.join(values)}。",
    )
    caption = tr(
        f"The number {x:.7g} in six types. TF32 and bf16 have the exponent of fp32, and so its range; fp16 has the mantissa of TF32.",
        f"同一个数 {x:.7g} 在六种类型里的样子。TF32 和 bf16 的指数与 fp32 一样，范围也就一样；fp16 的尾数与 TF32 一样长。",
    )
    return figure(s, alt=alt, caption=caption)


def adder(width: int = 8, powers: tuple[int, ...] = (0, -5, -9), mantissa: int = 3) -> str:
    """Numbers of a few bits lined up with the largest; what lies beyond the width of the adder is cut off."""
    cell, left, top = 26, 150, 48
    last = max(mantissa - min(powers), width) + 1
    s = Svg(left + last * cell + 24, top + (len(powers) + 1) * 36 + 30)
    bits = Grid(s, left, top, cell, 36, gap=(2, 12), rx=0, size=12)
    bits.heads(range(0, -last, -1), size=11)
    s.text_to(left - 12, top - 10, tr("power of two", "2 的幂"), "muted", 11)
    total = 0
    for row, power in enumerate(powers):
        word = 2 ** (mantissa + 1) - 1 - row * 2  # some bits to look at
        bits.name(row, f"{word / 2**mantissa:g} · 2^{power}", "mono", away=12)
        for at, bit in enumerate(f"{word:0{mantissa + 1}b}", -power):
            inside = at < width
            total += int(bit) * 2 ** (width - 1 - at) if inside else 0
            bits.box(row, at, "c1" if inside else "c0 dash", bit)
    row = len(powers)
    x, y = bits.corner(row, width)
    s.line(left, y - 6, left + last * cell, y - 6, "axis").line(
        x - 1, top - 4, x - 1, y + 26, "warn"
    )
    bits.note(row, width, tr("cut off", "被截掉"), "warn", away=6)
    bits.name(row, tr("sum", "总和"), "bold", away=12)
    shown = f"{total:0{width}b}"
    bits.row(row, [("c3", bit) for bit in shown], first=width - len(shown))
    alt = tr(
        f"Three numbers of {mantissa + 1} bits, lined up by their powers of two in an adder of {width} bits. Bits beyond it do not count.",
        f"三个 {mantissa + 1} 位的数，按 2 的幂对齐，放进 {width} 位的加法器；超出的位不计入。",
    )
    caption = tr(
        f"The principle, with an adder of {width} bits: all numbers are lined up with the largest, and bits that lie beyond the adder are cut off.",
        f"原理示意，加法器为 {width} 位：所有数都与最大的那个对齐，超出加法器的位被截掉。",
    )
    return figure(s, alt=alt, caption=caption)
