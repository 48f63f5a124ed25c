"""Drawings of the scoreboard: every rung under the roofs, forty shapes against cuBLAS, and what was wanted."""

import math

from cudatut.site import references
from cudatut.site.drawing import Axes, Roofline, Svg, decades, figure, log, table, tr


def roofline() -> str:
    """The roofs of memory, L2 and FMA units, and for each rung a circle (memory) and a square (L2) at its intensity."""
    points = references.facts("gemm/roofline", "points")
    roofs = references.facts("gemm/roofline", "roofs")
    names = list(dict.fromkeys(key.partition(": ")[0] for key in points))
    memory, cache, fma = roofs["memory"], roofs["L2 cache"], roofs["FMA units"]
    what = ("FLOP per byte of memory", "FLOP per byte of L2", "rate")
    found = {name: tuple(points[f"{name}: {one}"] for one in what) for name in names}
    xs = [v for a, b, _ in found.values() for v in (a, b)]
    x = min(*xs, 1e3 * fma / memory) / 3, max(xs) * 1.6
    y = min(rate for *_, rate in found.values()) / 2, fma * 1.6
    field = Roofline(x, y, bottom=380, steps=(1, 2, 5))
    words = tr(f"memory {memory:,.0f} GB/s", f"显存 {memory:,.0f} GB/s")
    field.slope(memory, fma, text=words, right=8, down=12)
    field.slope(cache, fma, "c3", f"L2 {cache:,.0f} GB/s")
    field.roof(fma, cache, text=f"FMA {fma:.1f} TFLOP/s")
    for name, (of_memory, of_l2, rate) in found.items():
        tip = f"{name}: {rate:.1f} TFLOP/s, {of_memory:.0f} / {of_l2:.0f} FLOP/B"
        dot, square = ("c5", "c5") if name == "cuBLAS" else ("c2", "c3")
        field.dot(of_memory, rate, f"{dot} solid", 4, tip)
        field.square(of_l2, rate, f"{square} solid", 4, tip)
    # A number goes to the nearest place beside its mark where neither a mark nor another number is in its way.
    nearby = [
        (side * away, down) for away in range(13, 80, 4) for down in (0, -8, 8) for side in (1, -1)
    ]
    taken = [field.at(x, rate) for *both, rate in found.values() for x in both]
    for number, (*both, rate) in enumerate(found.values(), 1):
        for mark in (field.at(x, rate) for x in both):
            places = ((mark[0] + right, mark[1] + down) for right, down in nearby)
            free = (
                (x, y)
                for x, y in places
                if all(abs(x - a) > 11 or abs(y - b) > 9 for a, b in taken)
            )
            taken.append(next(free))
            field.s.text(taken[-1][0], taken[-1][1] + 4, number, "muted", size=11)
    best = max(rate for *_, rate in found.values())
    alt = tr(
        f"Roofline with {len(names)} kernels. Counted by bytes of memory, and counted by bytes of L2, each stands at its rate; the highest "
        f"reaches {best / fma:.0%} of the level line.",
        f"{len(names)} 个 kernel 的 roofline：分别按显存字节和 L2 字节放置，高度是速率；最高的达到水平线的 {best / fma:.0%}。",
    )
    caption = tr(
        "Circles: FLOP per byte of memory, under the roof of memory. Squares: FLOP per byte between L2 and the SMs, under that of L2. The numbers are "
        "those of the table below; the pointer tells names.",
        "圆点按显存传输的字节数画，对应显存的屋顶；方块按 L2 与 SM 之间传输的字节数画，对应 L2 的屋顶。编号见下表，鼠标停留可看名字。",
    )
    return figure(field.s, alt=alt, caption=caption)


def roofline_table() -> str:
    """Bytes, intensities, rate, and the share of the roof above each rung, as a Markdown table."""
    points = references.facts("gemm/roofline", "points")
    roofs = references.facts("gemm/roofline", "roofs")
    heads = (
        "",
        "kernel",
        tr("memory, GB", "显存，GB"),
        tr("L2, GB", "L2，GB"),
        tr("FLOP/B, memory", "FLOP/B，显存"),
        tr("FLOP/B, L2", "FLOP/B，L2"),
        "TFLOP/s",
        tr("of its memory roof", "占显存屋顶"),
        tr("of its L2 roof", "占 L2 屋顶"),
    )
    rows = []
    for number, name in enumerate(dict.fromkeys(key.partition(": ")[0] for key in points), 1):
        rate, levels = points[f"{name}: rate"], ("memory", "L2")
        intensities = [points[f"{name}: FLOP per byte of {level}"] for level in levels]
        above = [
            min(roofs["FMA units"], roofs[roof] * intensity / 1e3)
            for roof, intensity in zip(("memory", "L2 cache"), intensities, strict=True)
        ]
        cells = [number, f"`{name}`" if name != "cuBLAS" else name]
        cells += [f"{points[f'{name}: {level}']:.2f}" for level in levels]
        cells += [f"{value:.0f}" for value in intensities]
        rows.append([*cells, f"{rate:.1f}", *(f"{100 * rate / roof:.0f}\u00a0%" for roof in above)])
    return table(heads, rows, words=[1])


def contest() -> str:
    """Forty shapes: ratio to cuBLAS over the number of operations."""
    ratios = references.facts("gemm/shapes_contest", "contest")
    mean = references.facts("gemm/shapes_contest", "mean")["geometric mean"]
    gflop = {shape: 2e-9 * math.prod(map(int, shape.split(" x "))) for shape in ratios}
    x = min(gflop.values()) / 1.5, max(gflop.values()) * 1.5
    y = min(0.75, *ratios.values()) / 1.05, max(1.5, *ratios.values()) * 1.05
    s = Svg(706, 350)
    field = Axes(s, log(*x), log(*y), 56, 690, 20, 300)
    ticks = (0.5, 0.6, 0.7, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0)
    field.y_ticks([tick for tick in ticks if y[0] <= tick <= y[1]]).y_ticks([1], cls="axis")
    field.x_ticks(decades(*x)).names(tr("GFLOP (logarithmic)", "GFLOP（对数）"))
    middle = tr(f"geometric mean {mean:.3f}", f"几何平均 {mean:.3f}")
    field.level(mean, "accent dash", middle)
    for shape, ratio in ratios.items():
        cls = "c2 solid" if ratio >= 1 else "c5 solid"
        field.dot(gflop[shape], ratio, cls, 4.5, f"{shape}: {ratio:.2f}")
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
    ratios = references.facts("gemm/shapes_contest", "contest")
    rates = references.facts("gemm/shapes_contest", "rates")
    heads = ("m x n x k", "TFLOP/s", tr("times cuBLAS", "与 cuBLAS 之比"))
    cells = [[shape, f"{rates[shape]:.1f}", f"{ratios[shape]:.2f}"] for shape in ratios]
    half = math.ceil(len(cells) / 2)
    right = [*cells[half:], ["", "", ""]]  # the last, where their number is odd
    return table(heads * 2, [a + b for a, b in zip(cells[:half], right)], words=(0, 3))


def targets() -> str:
    """What was wanted of the final kernel before it was written, and what was measured; a Markdown table."""
    measured = references.facts("gemm/scoreboard", "targets")
    transposed = references.facts("gemm/final_kernel_transposed", "least")["times cuBLAS"]
    skinny = references.facts("gemm/scoreboard_skinny", "ahead")["least: times cuBLAS"]
    ahead = references.facts("gemm/shapes_contest", "mean")["shapes where final is ahead"]
    share = measured["8192: of the FMA limit (90 wanted)"]
    # what, the value wanted, the value measured, digits of both, unit
    rows = [
        (
            tr(f"n = {n}: times cuBLAS", f"n = {n}：与 cuBLAS 之比"),
            wanted,
            measured[f"{n}: times cuBLAS ({wanted:.2f} wanted)"],
            2,
            3,
            "",
        )
        for n, wanted in ((2048, 1.0), (4096, 1.03), (8192, 1.03))
    ]
    name = tr("n = 4096, any transposition: times cuBLAS", "n = 4096，任一转置组合：与 cuBLAS 之比")
    rows.append((name, 1.0, transposed, 2, 3, ""))
    name = tr(
        "few rows or columns, great depth: least, times cuBLAS",
        "行很少、列很少或深度很大：与 cuBLAS 之比，最低",
    )
    rows.append((name, 1.0, skinny, 2, 3, ""))
    name = tr("forty shapes: ahead of cuBLAS in", "四十种形状：领先 cuBLAS 的")
    rows.append((name, 38, ahead, 0, 0, tr(" shapes", " 种")))
    name = tr("n = 8192: of the FMA limit", "n = 8192：占 FMA 上限")
    rows.append((name, 90.0, share, 0, 1, " %"))
    heads = (
        tr("target", "目标"),
        tr("wanted", "目标值"),
        tr("measured", "实测"),
        tr("reached", "达到"),
    )
    yes, no = tr("yes", "是"), tr("no", "否")
    cells = [
        (name, f"{wanted:.{few}f}{unit}", f"{value:.{many}f}{unit}", yes if value >= wanted else no)
        for name, wanted, value, few, many, unit in rows
    ]
    return table(heads, cells, words=(0, 3))
