"""Figures of the chapter on precision: the bits of six types, and an adder that lines its numbers up."""

from __future__ import annotations

import math

from cudatut.site.svg import Svg, figure, tr

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
    cell, high, left, top = 15, 22, 62, 44
    s = Svg(left + 32 * cell + 130, top + len(TYPES) * 38 + 6)
    s.text(left + 32 * cell + 14, 22, tr("value", "值"), "muted", "start", 12)
    s.rect(left, 8, 14, 14, "c5").text(left + 20, 20, tr("sign", "符号"), "", "start", 12)
    s.rect(left + 80, 8, 14, 14, "c3").text(left + 100, 20, tr("exponent", "指数"), "", "start", 12)
    s.rect(left + 190, 8, 14, 14, "c1").text(
        left + 210, 20, tr("mantissa", "尾数"), "", "start", 12
    )
    values = []
    for number, (name, (exponent, mantissa)) in enumerate(TYPES.items()):
        y = top + number * 38
        word, value = _bits(x, exponent, mantissa)
        values.append(f"{name} {value:.7g}")
        s.text(left - 10, y + 16, name, "bold", "end")
        for place, bit in enumerate(word):
            cls = "c5" if place == 0 else "c3" if place <= exponent else "c1"
            s.rect(left + place * cell, y, cell - 1, high, cls, bit, rx=0, size=11)
        s.text(left + 32 * cell + 14, y + 16, f"{value:.7g}", "mono", "start", 12)
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
    cell, left, top, high = 26, 150, 48, 26
    last = max(mantissa - min(powers), width) + 1
    s = Svg(left + last * cell + 24, top + (len(powers) + 1) * 36 + 30)
    total = 0
    for bit in range(last):
        s.text(left + bit * cell + cell / 2, top - 10, -bit, "muted", size=11)
    s.text(left - 12, top - 10, tr("power of two", "2 的幂"), "muted", "end", 11)
    for row, power in enumerate(powers):
        y = top + row * 36
        word = 2 ** (mantissa + 1) - 1 - row * 2  # some bits to look at
        s.text(left - 12, y + 18, f"{word / 2**mantissa:g} · 2^{power}", "mono", "end", 12)
        for place in range(mantissa + 1):
            at, bit = place - power, word >> mantissa - place & 1
            inside = at < width
            total += bit * 2 ** (width - 1 - at) if inside else 0
            s.rect(
                left + at * cell,
                y,
                cell - 2,
                high - 2,
                "c1" if inside else "c0 dash",
                bit,
                rx=0,
                size=12,
            )
    y = top + len(powers) * 36
    s.line(left, y - 6, left + last * cell, y - 6, "axis")
    s.line(left + width * cell - 1, top - 4, left + width * cell - 1, y + high, "warn")
    s.text(left + width * cell + 6, y + 18, tr("cut off", "被截掉"), "warn", "start", 12)
    s.text(left - 12, y + 18, tr("sum", "和"), "bold", "end", 12)
    shown = f"{total:0{width}b}"
    extra = len(shown) - width
    for place, bit in enumerate(shown):
        s.rect(left + (place - extra) * cell, y, cell - 2, high - 2, "c3", bit, rx=0, size=12)
    alt = tr(
        f"Three numbers of {mantissa + 1} bits, lined up by their powers of two in an adder of {width} bits. Bits beyond it do not count.",
        f"三个 {mantissa + 1} 位的数，按 2 的幂对齐，放进 {width} 位的加法器；超出的位不计入。",
    )
    caption = tr(
        f"The principle, with an adder of {width} bits: all numbers are lined up with the largest, and bits that lie beyond the adder are cut off.",
        f"原理示意，加法器为 {width} 位：所有数都与最大的那个对齐，超出加法器的位被截掉。",
    )
    return figure(s, alt=alt, caption=caption)
