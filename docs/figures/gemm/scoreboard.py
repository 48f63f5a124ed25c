"""Drawings of the scoreboard: every rung under the roofs, forty shapes against cuBLAS, and what was wanted."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape

from cudatut.site import references
from cudatut.site.svg import Svg, figure, tr


def _rows(example: str, cell: str, index: int = 0) -> dict[str, float]:
    result = references.load(example).results(cell)[index]
    return {row["name"]: row["value"] for row in result["rows"]}


def _log(low: float, high: float, start: float, stop: float) -> Callable[[float], float]:
    """A function from a value between low and high to a coordinate, logarithmically."""
    return lambda value: start + (stop - start) * math.log(value / low) / math.log(high / low)


def roofline() -> str:
    """The roofs of memory, L2 and FMA units, and for each rung a circle (memory) and a square (L2) at its intensity."""
    points, roofs = _rows("gemm/roofline", "points"), _rows("gemm/roofline", "roofs")
    names = list(dict.fromkeys(key.partition(": ")[0] for key in points))
    memory, cache, fma = roofs["memory"], roofs["L2 cache"], roofs["FMA units"]
    found = {
        name: (
            points[f"{name}: FLOP per byte of memory"],
            points[f"{name}: FLOP per byte of L2"],
            points[f"{name}: rate"],
        )
        for name in names
    }
    xs = [v for a, b, _ in found.values() for v in (a, b)]
    x0, x1 = min(*xs, 1e3 * fma / memory) / 3, max(xs) * 1.6
    y0, y1 = min(rate for *_, rate in found.values()) / 2, fma * 1.6
    left, right, top, bottom = 56, 700, 26, 380
    px, py = _log(x0, x1, left, right), _log(y0, y1, bottom, top)
    s = Svg(712, 430)
    for power in range(math.ceil(math.log2(x0)), math.floor(math.log2(x1)) + 1):
        if power % 2 == 0:
            x = 2.0**power
            s.line(px(x), top, px(x), bottom, "grid").text(
                px(x), bottom + 18, f"{x:g}", "muted", size=12
            )
    for y in (1, 2, 5, 10, 20, 50, 100):
        if y0 <= y <= y1:
            s.line(left, py(y), right, py(y), "grid").text(
                left - 6, py(y) + 4, y, "muted", "end", 12
            )
    s.text(
        (left + right) / 2,
        bottom + 38,
        tr("FLOP per byte (logarithmic)", "每字节 FLOP（对数）"),
        "muted",
        size=12,
    )
    s.text(4, 14, tr("TFLOP/s (logarithmic)", "TFLOP/s（对数）"), "muted", "start", 12)
    for rate, cls, label in ((memory, "accent", tr("memory", "显存")), (cache, "c3", "L2")):
        ridge = 1e3 * fma / rate
        start = max(x0, 1e3 * y0 / rate)
        s.line(px(start), py(rate * start / 1e3), px(ridge), py(fma), cls)
        middle = math.sqrt(start * ridge)
        # To the left of the upper line, to the right of the lower one.
        side, drop, anchor = (-6, -6, "end") if rate == cache else (8, 12, "start")
        words = f"{label} {rate:,.0f} GB/s"
        s.text(px(middle) + side, py(rate * middle / 1e3) + drop, words, cls, anchor, 12)
    s.line(px(1e3 * fma / cache), py(fma), right, py(fma), "accent")
    s.text(right, py(fma) - 8, f"FMA {fma:.1f} TFLOP/s", "accent", "end", 12)
    marks = [(px(at), py(rate)) for *found_at, rate in found.values() for at in found_at]
    for name, (from_memory, from_cache, rate) in found.items():
        told = f"{name}: {rate:.1f} TFLOP/s, {from_memory:.0f} / {from_cache:.0f} FLOP/B"
        cls = "c5 solid" if name == "cuBLAS" else "c2 solid"
        s.raw(f"<g><title>{escape(told, quote=False)}</title>")
        s.circle(px(from_memory), py(rate), 4, cls)
        s.rect(
            px(from_cache) - 4, py(rate) - 4, 8, 8, "c3 solid" if name != "cuBLAS" else cls, rx=0
        )
        s.raw("</g>")
    # A number goes to the nearest place beside its mark where neither a mark nor another number is in its way.
    taken = list(marks)
    for number, (from_memory, from_cache, rate) in enumerate(found.values(), 1):
        for at in (px(from_memory), px(from_cache)):
            places = (
                (at + side * away, py(rate) + drop)
                for away in range(13, 80, 4)
                for drop in (0, -8, 8)
                for side in (1, -1)
            )
            x, y = next(
                (x, y)
                for x, y in places
                if all(abs(x - a) > 11 or abs(y - b) > 9 for a, b in taken)
            )
            taken.append((x, y))
            s.text(x, y + 4, number, "muted", size=11)
    best = max(rate for *_, rate in found.values())
    alt = tr(
        f"Roofline with {len(names)} kernels. Counted by bytes of memory, and counted by bytes of L2, each stands at its rate; the highest "
        f"reaches {best / fma:.0%} of the level line.",
        f"{len(names)} 个 kernel 的 roofline：分别按显存字节和 L2 字节放置，高度是速率；最高的达到水平线的 {best / fma:.0%}。",
    )
    caption = tr(
        "Circles: FLOP per byte of memory, under the roof of memory. Squares: FLOP per byte between L2 and the SMs, under that of L2. The numbers are "
        "those of the table below; the pointer tells names.",
        "圆点：按显存字节计，对应显存的屋顶；方块：按 L2 与 SM 之间的字节计，对应 L2 的屋顶。编号见下表，鼠标停留可看名字。",
    )
    return figure(s, alt=alt, caption=caption)


def roofline_table() -> str:
    """Bytes, intensities, rate, and the share of the roof above each rung, as a Markdown table."""
    points, roofs = _rows("gemm/roofline", "points"), _rows("gemm/roofline", "roofs")
    heads = (
        "",
        tr("kernel", "kernel"),
        tr("memory, GB", "显存，GB"),
        tr("L2, GB", "L2，GB"),
        tr("FLOP/B, memory", "FLOP/B，显存"),
        "FLOP/B, L2" if tr("en", "zh") == "en" else "FLOP/B，L2",
        "TFLOP/s",
        tr("of its memory roof", "占显存屋顶"),
        tr("of its L2 roof", "占 L2 屋顶"),
    )
    lines = ["| " + " | ".join(heads) + " |", "|---:|---|" + "---:|" * (len(heads) - 2)]
    for number, name in enumerate(dict.fromkeys(key.partition(": ")[0] for key in points), 1):
        rate = points[f"{name}: rate"]
        intensities = [points[f"{name}: FLOP per byte of {level}"] for level in ("memory", "L2")]
        above = [
            min(roofs["FMA units"], roofs[roof] * intensity / 1e3)
            for roof, intensity in zip(("memory", "L2 cache"), intensities, strict=True)
        ]
        cells = [f"{number}", f"`{name}`" if name != "cuBLAS" else name]
        cells += [f"{points[f'{name}: {level}']:.2f}" for level in ("memory", "L2")]
        cells += [f"{value:.0f}" for value in intensities]
        cells += [f"{rate:.1f}", *(f"{100 * rate / roof:.0f}\u00a0%" for roof in above)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def contest() -> str:
    """Forty shapes: ratio to cuBLAS over the number of operations."""
    ratios = _rows("gemm/shapes_contest", "contest")
    mean = _rows("gemm/shapes_contest", "mean")["geometric mean"]
    places = []
    for shape, ratio in ratios.items():
        m, n, k = (int(extent) for extent in shape.split(" x "))
        places.append((2e-9 * m * n * k, ratio, shape))
    work = [flops for flops, *_ in places]
    low, high = min(0.75, *ratios.values()) / 1.05, max(1.5, *ratios.values()) * 1.05
    left, right, top, bottom = 56, 690, 20, 300
    px = _log(min(work) / 1.5, max(work) * 1.5, left, right)
    py = _log(low, high, bottom, top)
    s = Svg(706, 350)
    for tick in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0):
        if low <= tick <= high:
            s.line(left, py(tick), right, py(tick), "axis" if tick == 1 else "grid")
            s.text(left - 6, py(tick) + 4, f"{tick:g}", "muted", "end", 12)
    for power in range(
        math.ceil(math.log10(min(work) / 1.5)), math.floor(math.log10(max(work) * 1.5)) + 1
    ):
        x = 10.0**power
        s.line(px(x), top, px(x), bottom, "grid").text(
            px(x), bottom + 18, f"{x:g}", "muted", size=12
        )
    s.text(
        (left + right) / 2,
        bottom + 38,
        tr("GFLOP (logarithmic)", "GFLOP（对数）"),
        "muted",
        size=12,
    )
    s.line(left, py(mean), right, py(mean), "accent dash")
    s.text(
        right,
        py(mean) - 6,
        tr(f"geometric mean {mean:.3f}", f"几何平均 {mean:.3f}"),
        "accent",
        "end",
        12,
    )
    for flops, ratio, shape in places:
        s.raw(f"<g><title>{escape(shape)}: {ratio:.2f}</title>")
        s.circle(px(flops), py(ratio), 4.5, "c2 solid" if ratio >= 1 else "c5 solid")
        s.raw("</g>")
    ahead = sum(ratio > 1 for ratio in ratios.values())
    alt = tr(
        f"Time of cuBLAS over time of final for {len(ratios)} shapes: from {min(ratios.values()):.2f} to {max(ratios.values()):.2f}, above 1 in "
        f"{ahead} of them; geometric mean {mean:.3f}.",
        f"{len(ratios)} 种形状下 cuBLAS 的用时与 final 的用时之比：从 {min(ratios.values()):.2f} 到 {max(ratios.values()):.2f}，其中 {ahead} 种大于 1；几何平均 {mean:.3f}。",
    )
    caption = tr(
        "Above 1 the final kernel is faster. Both axes are logarithmic; the pointer tells the shape.",
        "大于 1 表示最终的 kernel 更快。两轴都是对数刻度，鼠标停留可看形状。",
    )
    return figure(s, alt=alt, caption=caption)


def contest_table() -> str:
    """All forty shapes with TFLOP/s and ratio, as a Markdown table, two shapes a line."""
    ratios, rates = (_rows("gemm/shapes_contest", cell) for cell in ("contest", "rates"))
    heads = ["m x n x k", "TFLOP/s", tr("times cuBLAS", "cuBLAS 的倍数")]
    cells = [[shape, f"{rates[shape]:.1f}", f"{ratios[shape]:.2f}"] for shape in ratios]
    half = math.ceil(len(cells) / 2)
    lines = ["| " + " | ".join(heads * 2) + " |", "|---|---:|---:|---|---:|---:|"]
    for number in range(half):
        right = cells[number + half] if number + half < len(cells) else ["", "", ""]
        lines.append("| " + " | ".join(cells[number] + right) + " |")
    return "\n".join(lines)


def targets() -> str:
    """What was wanted of the final kernel before it was written, and what was measured; a Markdown table."""
    measured = _rows("gemm/scoreboard", "targets")
    rows = [
        (
            tr(f"n = {n}: times cuBLAS", f"n = {n}：cuBLAS 的倍数"),
            wanted,
            measured[f"{n}: times cuBLAS ({wanted:.2f} wanted)"],
            "",
        )
        for n, wanted in ((2048, 1.0), (4096, 1.03), (8192, 1.03))
    ]
    least = _rows("gemm/final_kernel_transposed", "least")["times cuBLAS"]
    rows.append(
        (
            tr(
                "n = 4096, any transposition: times cuBLAS",
                "n = 4096，任一转置组合：cuBLAS 的倍数",
            ),
            1.0,
            least,
            "",
        )
    )
    least = _rows("gemm/scoreboard_skinny", "ahead")["least: times cuBLAS"]
    rows.append(
        (
            tr(
                "few rows or columns, great depth: least, times cuBLAS",
                "行列很少或很深：最低，cuBLAS 的倍数",
            ),
            1.0,
            least,
            "",
        )
    )
    ahead = _rows("gemm/shapes_contest", "mean")["shapes where final is ahead"]
    rows.append(
        (
            tr("forty shapes: ahead of cuBLAS in", "四十种形状：领先 cuBLAS 的"),
            38,
            ahead,
            tr(" shapes", " 种"),
        )
    )
    share = measured["8192: of the FMA limit (90 wanted)"]
    rows.append((tr("n = 8192: of the FMA limit", "n = 8192：占 FMA 上限"), 90.0, share, " %"))
    heads = (
        tr("target", "目标"),
        tr("wanted", "目标值"),
        tr("measured", "实测"),
        tr("reached", "达到"),
    )
    lines = ["| " + " | ".join(heads) + " |", "|---|---:|---:|---|"]
    for name, wanted, value, unit in rows:
        digits = 0 if unit else 2
        shown = f"{value:.3f}"
        if unit:
            shown = f"{value:.1f}" if unit == " %" else f"{value:.0f}"
        reached = tr("yes", "是") if value >= wanted else tr("no", "否")
        lines.append(f"| {name} | {wanted:.{digits}f}{unit} | {shown}{unit} | {reached} |")
    return "\n".join(lines)
