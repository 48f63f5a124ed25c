"""Figures of the chapter on tensor cores: two kinds of instructions, who holds which element, and the roofline."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape
from typing import Any

from cudatut.site import references
from cudatut.site.svg import Svg, figure, tr

EXAMPLE = "tensor/tensor_cores"
DIGITS = "0123456789abcdefghijklmnopqrstuv"


def _facts(cell: str) -> dict[str, Any]:
    result = references.load(EXAMPLE).results(cell)[0]
    return {row["name"]: row["value"] for row in result["rows"]}


def _table(cell: str) -> dict[str, dict[str, Any]]:
    result = references.load(EXAMPLE).results(cell)[0]
    columns = [column["name"] for column in result["columns"]]
    return {row["name"]: dict(zip(columns, row["values"], strict=True)) for row in result["rows"]}


def instructions(rows: int = 16, columns: int = 8, depth: int = 16) -> str:
    """What a warp's FMA does, and what one instruction on the tensor cores does."""
    cell, top = 11, 66
    left_fma, left = 20, 330
    s = Svg(700, top + (depth + rows) * cell + 60)
    s.text(left_fma + 110, 22, tr("an FMA instruction", "一条 FMA 指令"), "bold")
    s.text(
        left_fma + 110, 42, tr("32 lanes, one FMA each", "32 个 lane，各一次 FMA"), "muted", size=12
    )
    for lane in range(32):
        x, y = left_fma + lane % 8 * 28, top + 20 + lane // 8 * 40
        s.rect(x, y, 24, 24, f"c{1 + lane // 8}", lane, size=11)
    s.text(left_fma + 110, top + 210, tr("32 FMAs", "32 次 FMA"), "accent")
    x_b, y_a = left + depth * cell + 24, top + depth * cell + 24
    s.text(left + 170, 22, tr("a tensor core instruction", "一条张量核心指令"), "bold")
    s.text(
        left + 170,
        42,
        tr("32 lanes hold matrices together", "32 个 lane 合起来持有矩阵"),
        "muted",
        size=12,
    )

    def matrix(
        x: int, y: int, high: int, wide: int, cls: str, mark: Callable[[int, int], bool]
    ) -> None:
        for r in range(high):
            for c in range(wide):
                s.rect(
                    x + c * cell,
                    y + r * cell,
                    cell - 1,
                    cell - 1,
                    "c3 solid" if mark(r, c) else cls,
                    rx=0,
                )

    matrix(left, y_a, rows, depth, "c1", lambda r, c: r == 4)
    matrix(x_b, top, depth, columns, "c2", lambda r, c: c == 2)
    matrix(x_b, y_a, rows, columns, "c0", lambda r, c: (r, c) == (4, 2))
    s.text(left + depth * cell / 2, y_a - 10, f"A, {rows} × {depth}", "bold", size=12)
    s.text(
        x_b + columns * cell + 12,
        top + depth * cell / 2,
        f"B, {depth} × {columns}",
        "bold",
        "start",
        12,
    )
    s.text(
        x_b + columns * cell + 12, y_a + rows * cell / 2, f"{rows} × {columns}", "bold", "start", 12
    )
    s.text(
        x_b + columns * cell + 12,
        y_a + rows * cell / 2 + 18,
        tr("sums, fp32", "和，fp32"),
        "muted",
        "start",
        12,
    )
    fmas = rows * columns * depth
    s.text(
        left + 170,
        y_a + rows * cell + 28,
        f"{rows} · {columns} · {depth} = {fmas} " + tr("FMAs", "次 FMA"),
        "accent",
    )
    alt = tr(
        f"Left: 32 lanes, each with one FMA. Right: a matrix of {rows} by {depth} times one of {depth} by {columns}, which is {fmas} FMAs; a row of A "
        "and a column of B give one of the sums.",
        f"左：32 个 lane，各做一次 FMA。右：{rows} x {depth} 的矩阵乘 {depth} x {columns} 的矩阵，共 {fmas} 次 FMA；A 的一行与 B 的一列得到一个和。",
    )
    caption = tr(
        f"One instruction of a warp: 32 FMAs, or {fmas}. A row of A and a column of B ({depth} products) are added to one sum.",
        f"线程束的一条指令：32 次 FMA，或者 {fmas} 次。A 的一行与 B 的一列（{depth} 个乘积）加到一个和上。",
    )
    return figure(s, alt=alt, caption=caption)


def holders(lane: int = 5) -> str:
    """The three fragments of WMMA as one run found them: the lane of each element, those of one lane with their place."""
    found = _facts("holders")
    cell, top, gap = 13, 54, 22
    s = Svg(16 * cell * 3 + 2 * gap + 20, top + 16 * cell + 34)
    mine: dict[str, list[tuple[int, int]]] = {}
    names = {"A": "A", "B": "B", "C": tr("sums", "和")}
    for number, (name, title) in enumerate(names.items()):
        lanes = [DIGITS.index(digit) for digit in str(found[f"{name}: lane"])]
        places = [DIGITS.index(digit) for digit in str(found[f"{name}: place in x"])]
        left = 10 + number * (16 * cell + gap)
        s.text(left + 8 * cell, 22, title, "bold")
        s.text(left + 8 * cell, 40, "16 × 16", "muted", size=12)
        for element, holder in enumerate(lanes):
            row, column = divmod(element, 16)
            x, y = left + column * cell, top + row * cell
            if holder == lane:
                mine.setdefault(title, []).append((row, column))
                s.rect(x, y, cell - 1, cell - 1, "c3 solid", places[element], rx=0, size=9)
            else:
                s.rect(x, y, cell - 1, cell - 1, f"c{1 + holder // 8 % 2}", holder, rx=0, size=8)
    rows = "; ".join(
        f"{title}: {', '.join(str(at) for at in cells)}" for title, cells in mine.items()
    )
    alt = tr(
        f"Three matrices of 16 by 16 with the lane that holds each element. Lane {lane} holds, by row and column, {rows}.",
        f"三个 16 x 16 矩阵，每个元素标着持有它的 lane。lane {lane} 持有的元素（行，列）：{rows}。",
    )
    caption = tr(
        f"The lane that holds each element, as the kernel found it on this GPU. Highlighted are the elements of lane {lane}, with their place in `x`.",
        f"每个元素由哪个 lane 持有，是 kernel 在这块 GPU 上查到的。突出的是 lane {lane} 的元素，数字是它们在 `x` 中的位置。",
    )
    return figure(s, alt=alt, caption=caption)


def _log(low: float, high: float, start: float, stop: float) -> Callable[[float], float]:
    return lambda value: start + (stop - start) * math.log(value / low) / math.log(high / low)


def roofline() -> str:
    """The roof of the L2 cache, those of both kinds of instructions, and the kernels under them."""
    roofs, points, brings = _table("roofs"), _table("bound"), _facts("l2")
    fma, tensor = roofs["FFMA"]["rate"], roofs["HMMA"]["rate"]
    slopes = {"L2": brings["L2 cache"], tr("memory", "显存"): brings["memory"]}
    xs = [point["FLOPs per byte"] for point in points.values()]
    rates = [point["measured"] for point in points.values()]
    x0, x1 = min(xs) / 2.5, max(*xs, 1e3 * tensor / min(slopes.values())) * 2
    y0, y1 = min(rates) / 2, tensor * 1.8
    left, right, top, bottom = 56, 690, 26, 340
    px, py = _log(x0, x1, left, right), _log(y0, y1, bottom, top)
    s = Svg(712, 396)
    for power in range(math.ceil(math.log2(x0)), math.floor(math.log2(x1)) + 1):
        s.line(px(2.0**power), top, px(2.0**power), bottom, "grid")
        s.text(px(2.0**power), bottom + 18, f"{2.0**power:g}", "muted", size=12)
    for y in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
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
    for (name, rate), cls in zip(slopes.items(), ("c3", "muted"), strict=True):
        start, stop = max(x0, 1e3 * y0 / rate), min(x1, 1e3 * tensor / rate)
        s.line(px(start), py(rate * start / 1e3), px(stop), py(rate * stop / 1e3), cls)
        at = stop / 1.6
        s.text(px(at) - 8, py(rate * at / 1e3) - 6, name, cls, "end", 12)
    for name, rate, cls in (("FFMA", fma, "accent"), ("HMMA", tensor, "c2")):
        ridge = max(x0, 1e3 * rate / slopes["L2"])
        s.line(px(ridge), py(rate), right, py(rate), cls)
        s.text(right, py(rate) - 7, f"{name} {rate:.0f} TFLOP/s", cls, "end", 12)
    for name, point in points.items():
        x, y = px(point["FLOPs per byte"]), py(point["measured"])
        told = f"{name}: {point['measured']:.1f} TFLOP/s, {point['FLOPs per byte']:.1f} FLOP/B"
        s.raw(f"<g><title>{escape(told, quote=False)}</title>")
        s.circle(x, y, 5, "c2 solid" if name.startswith("wmma") else "c5 solid")
        s.raw("</g>")
        s.text(x + 10, y + 16, name, "mono", "start", 12)
    alt = tr(
        f"Roofline with the slope of the L2 cache and two level roofs, {fma:.0f} and {tensor:.0f} TFLOP/s. "
        + " ".join(
            f"{name} stands at {p['FLOPs per byte']:.0f} FLOP per byte and {p['measured']:.0f} TFLOP/s."
            for name, p in points.items()
        ),
        f"roofline：L2 缓存的斜线和两条水平线，{fma:.0f} 与 {tensor:.0f} TFLOP/s。"
        + "".join(
            f"{name} 位于每字节 {p['FLOPs per byte']:.0f} FLOP、{p['measured']:.0f} TFLOP/s。"
            for name, p in points.items()
        ),
    )
    caption = tr(
        "The roofline with its new roof. Kernels stand at their operations per byte between the L2 cache and the SMs, so the slope of L2 is theirs; that "
        "of memory is there for comparison.",
        "带有新屋顶的 roofline。kernel 的横坐标是 L2 缓存与 SM 之间每字节的运算次数，所以对应的是 L2 的斜线；显存的斜线只供比较。",
    )
    return figure(s, alt=alt, caption=caption)
