"""Drawings of primitives/scoreboard: which part of a kernel's time is there for any array, and which grows with its length."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr


def parts(
    first_us: float = 4.0,
    each: int = 8,
    rate_gbs: float = 4200.0,
    exponents: tuple[int, ...] = (10, 14, 18, 20, 22, 24, 28),
) -> str:
    """A bar for each length: the time of the shortest array, and the time of the bytes (`each` of an element)."""
    left, top, height, wide, full = 70, 28, 30, 22, 420
    s = Svg(left + full + 20, top + height * len(exponents) + 44)
    s.text(left, 16, tr("of the time, %", "占用时的百分比"), "muted", "start")
    for i, e in enumerate(exponents):
        moved = each * 2**e / rate_gbs / 1e3
        share = first_us / (first_us + moved)
        y = top + height * i
        s.text(left - 10, y + 16, f"2^{e}", "mono", "end")
        cut = round(full * share)
        if cut > 0:
            s.rect(left, y, cut, wide, "c2", f"{100 * share:.0f}" if share > 0.1 else "", size=12)
        if cut < full:
            own = f"{100 - 100 * share:.0f}" if share < 0.9 else ""
            s.rect(left + cut, y, full - cut, wide, "c1", own, size=12)
    y = top + height * len(exponents) + 8
    s.rect(left, y, 16, 14, "c2", "")
    s.text(left + 24, y + 12, tr("any array", "任何数组都有"), "muted", "start")
    s.rect(left + 190, y, 16, 14, "c1", "")
    s.text(left + 214, y + 12, tr("its bytes", "搬运数据"), "muted", "start")
    alt = tr(
        f"Bars for lengths from 2^{exponents[0]} to 2^{exponents[-1]}: the part of the time that any array takes shrinks from nearly all of it to nearly nothing.",
        f"长度从 2^{exponents[0]} 到 2^{exponents[-1]} 的横条：任何数组都要付出的那部分时间，从几乎全部缩到几乎没有。",
    )
    caption = tr(
        f"Computed for {first_us:.0f} µs that any array takes, {each} bytes an element and {rate_gbs:,.0f} GB/s.",
        f"按任何数组都要 {first_us:.0f} µs、每个元素 {each} 字节、{rate_gbs:,.0f} GB/s 算出。",
    )
    return figure(s, alt=alt, caption=caption)
