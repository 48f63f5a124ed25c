"""Drawings of occupancy: what the blocks of an SM use up, and occupancy over the size of a block."""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

import cudatut as ct
from cudatut import catalog
from cudatut.site.svg import Svg, figure, tr

EXAMPLE = "basics/occupancy"


@cache
def _rules(_key: int = 0) -> tuple[Any, dict[str, dict[str, int]]]:
    """The page's own function `room` and its table of GPUs, so that the drawings follow the code.

    Read from the example's file: what a recording says is shown, and never run.
    """
    cells = catalog.cells(catalog.get(EXAMPLE).path)
    program, table = ast.parse(cells["program"]), ast.parse(cells["other-gpus"])
    wanted = [node for node in program.body if isinstance(node, ast.FunctionDef)]
    rows = next(
        node.value
        for node in table.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "GPUS"
    )
    names: dict[str, Any] = {"ct": ct}
    exec(compile(ast.Module(wanted, []), EXAMPLE, "exec"), names)
    keys = ("warps", "blocks", "registers", "shared", "reserved")
    gpus = {name: dict(zip(keys, values)) for name, values in ast.literal_eval(rows).items()}
    return names["room"], gpus


def _resident(sm: dict[str, int], threads: int, registers: int, shared: int) -> tuple[int, float]:
    """Blocks on an SM together, and the occupancy, 0 to 1."""
    blocks = min(_rules()[0](sm, threads, registers, shared).values())
    return blocks, blocks * ct.cdiv(threads, 32) / sm["warps"]


def uses(gpu: str, threads: int, registers: int, shared: int, title: str = "") -> str:
    """One bar per resource of an SM: the part that each resident block takes, and what is left over."""
    room, gpus = _rules()
    sm = gpus[gpu]
    blocks, occupancy = _resident(sm, threads, registers, shared)
    allowed = room(sm, threads, registers, shared)
    warps = ct.cdiv(threads, 32)
    bars = (
        ("warps", tr("warps", "线程束"), warps, sm["warps"], ""),
        ("blocks", tr("blocks", "线程块"), 1, sm["blocks"], ""),
        (
            "registers",
            tr("registers", "寄存器"),
            warps * 256 * ct.cdiv(32 * registers, 256),
            sm["registers"],
            "",
        ),
        (
            "shared memory",
            tr("shared memory", "共享内存"),
            128 * ct.cdiv(shared + sm["reserved"], 128),
            sm["shared"],
            " B",
        ),
    )
    left, width, row = 116, 400, 46
    s = Svg(left + width + 190, row * len(bars) + 12)
    for line, (key, name, part, whole, unit) in enumerate(bars):
        y = 6 + row * line
        s.text(left - 10, y + 22, name, "", "end")
        s.rect(left, y, width, 32, "hollow dash muted", rx=0)
        for b in range(blocks):
            s.rect(
                left + width * part * b / whole, y, width * part / whole, 32, f"c{1 + b % 6}", rx=0
            )
        full = allowed[key] == blocks
        s.text(left + width + 10, y + 14, f"{part * blocks:,} / {whole:,}{unit}", "", "start", 13)
        room = tr(f"room for {allowed[key]}", f"放得下 {allowed[key]} 个")
        s.text(left + width + 10, y + 31, room, "warn" if full else "muted", "start", 13)
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
        f"每种颜色是一个线程块；虚线部分是剩余。红色的数字最小，由它决定。占用率 {occupancy:.0%}。",
    )
    return figure(s, alt=alt, caption=caption)


def by_block(gpu: str = "9.0", registers: tuple[int, ...] = (32, 48, 80, 128)) -> str:
    """Occupancy over threads per block, one line per number of registers, without shared memory."""
    sm = _rules()[1][gpu]
    left, right, top, bottom = 56, 560, 16, 236
    s = Svg(right + 140, bottom + 50)

    def px(threads: int) -> float:
        return left + (right - left) * threads / 1024

    def py(share: float) -> float:
        return bottom - (bottom - top) * share

    for percent in (0, 25, 50, 75, 100):
        y = py(percent / 100)
        s.line(left, y, right, y, "grid").text(left - 8, y + 5, f"{percent} %", "muted", "end")
    for threads in range(0, 1025, 128):
        s.text(px(threads), bottom + 20, threads, "muted")
    s.text((left + right) / 2, bottom + 42, tr("threads per block", "每块线程数"))
    peaks = []
    for hue, count in enumerate(registers, 1):
        points = []
        for threads in range(32, 1025, 32):
            _, share = _resident(sm, threads, count, 0)
            points.append((threads, share))
        s.polyline([(px(t), py(v)) for t, v in points], f"c{hue}")
        for t, v in points:
            s.circle(px(t), py(v), 2.6, f"c{hue} solid")
        y = top + 24 * hue
        s.line(right + 14, y - 5, right + 40, y - 5, f"c{hue}")
        s.text(right + 46, y, tr(f"{count} registers", f"{count} 个寄存器"), "", "start")
        peaks.append(f"{count}: {max(v for _, v in points):.0%}")
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
