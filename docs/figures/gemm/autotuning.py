"""Drawings of a search: what the rules leave, what luck looks like, and how a race spends its rounds."""

from __future__ import annotations

import random
from statistics import median

from cudatut.site.svg import Svg, figure, tr

_RULES = {  # names of the rules in Chinese
    "all": "全部",
    "whole warps": "完整的线程束",
    "whole copies": "平均分担的复制",
    "threads": "线程数",
    "shared memory": "共享内存",
    "registers": "寄存器",
    "8 warps per SM": "每个 SM 8 个线程束",
    "bytes from L2": "从 L2 读取的字节",
}


def funnel() -> str:
    """How many candidates each rule leaves on an H100 and on an RTX 3090, as bars."""
    from cudatut.book.gemm.ladder import autotuning_space as space

    gpus = {"H100": space.prune(space.H100)[0], "RTX 3090": space.prune(space.RTX_3090)[0]}
    names = [name for name, _ in gpus["H100"]]
    left, width, step = 220, 380, 44
    s = Svg(700, 30 + step * len(names))
    most = gpus["H100"][0][1]
    for index, (gpu, _) in enumerate(gpus.items()):
        x = left + 150 * index
        s.rect(x, 4, 14, 14, f"c{index + 1}").text(x + 20, 16, gpu, "", "start")
    for row, name in enumerate(names):
        y = 30 + step * row
        s.text(left - 10, y + 22, tr(name, _RULES[name]), "", "end")
        for index, steps in enumerate(gpus.values()):
            count = steps[row][1]
            bar = max(width * count / most, 1)
            s.rect(left, y + 17 * index, bar, 15, f"c{index + 1}", rx=2)
            s.text(left + bar + 6, y + 13 + 17 * index, f"{count:,}", "muted", "start", 13)
    ends = {gpu: steps[-1][1] for gpu, steps in gpus.items()}
    listed = tr(", ", "，").join(f"{gpu}{tr(': ', '：')}{count}" for gpu, count in ends.items())
    alt = tr(
        f"Of {most:,} candidates the rules leave one after another fewer; in the end {listed}.",
        f"{most:,} 个候选被规则逐条筛去，最后剩下 {listed}。",
    )
    caption = tr(
        f"Candidates left after each rule. Nothing was compiled for that. In the end: {listed}.",
        f"每条规则之后剩下的候选，为此没有编译任何东西。最后：{listed}。",
    )
    return figure(s, alt=alt, caption=caption)


def luck(names: int = 24, scatter: float = 2.0, rounds: tuple[int, ...] = (1, 5, 30)) -> str:
    """Equal candidates, each measured by the median of so many runs that scatter by some percent: the luckiest leads."""
    rng = random.Random(7)
    left, right, row = 130, 560, 56
    s = Svg(700, row * len(rounds) + 56)
    span = 2.6 * scatter

    def px(percent: float) -> float:
        return (left + right) / 2 + (right - left) / 2 * percent / span

    leads = []
    for index, count in enumerate(rounds):
        y = 26 + row * index
        found = sorted(median(rng.gauss(0, scatter) for _ in range(count)) for _ in range(names))
        s.line(left, y, right, y, "axis")
        for place, value in enumerate(found):
            x = min(max(px(value), left), right)
            s.circle(x, y, 6 if place == 0 else 4.5, "c2 solid" if place == 0 else "c1 solid")
        leads.append(-found[0])
        s.text(left - 12, y + 5, tr(f"rounds: {count}", f"{count} 轮"), "", "end")
        s.text(
            right + 12, y + 5, tr(f"lead {leads[-1]:.1f} %", f"领先 {leads[-1]:.1f} %"), "", "start"
        )
    bottom = row * len(rounds) + 8
    s.line(px(0), 8, px(0), bottom, "dash muted")
    s.text(px(0), bottom + 18, tr("true time of all", "所有候选的真实时间"), "muted")
    s.text(left, bottom + 40, tr("faster", "更快"), "muted", "start")
    s.text(right, bottom + 40, tr("slower", "更慢"), "muted", "end")
    listed = tr(", ", "，").join(
        f"{count}{tr(': ', '：')}{lead:.1f} %" for count, lead in zip(rounds, leads)
    )
    alt = tr(
        f"{names} equally fast candidates, drawn from a random generator. The lead of the luckiest by rounds is {listed}.",
        f"{names} 个同样快的候选，由随机数生成。按轮数，运气最好者的领先为 {listed}。",
    )
    caption = tr(
        f"{names} candidates that are equally fast; single runs scatter by {scatter:g} %. The luckiest looks ahead by {listed} (rounds: lead).",
        f"{names} 个同样快的候选，单次运行的离散为 {scatter:g} %。看上去领先的幅度（轮数：领先）：{listed}。",
    )
    return figure(s, alt=alt, caption=caption)


def heats(
    contestants: int = 400,
    rounds: tuple[int, ...] = (2, 5, 12, 30),
    keep: float = 0.25,
    at_least: int = 4,
) -> str:
    """Successive halving: each heat is a box, as wide as it has rounds and as high as it has contestants."""
    fields, left = [], contestants
    for count in rounds:
        fields.append((count, left))
        left = max(at_least, round(left * keep))
    spent = sum(count * field for count, field in fields)
    whole = rounds[-1] * contestants
    x, top, height = 60.0, 60, 200
    scale = 520 / sum(rounds)
    s = Svg(700, top + height + 60)
    s.rect(x, top, 520, height, "c0 dash", rx=0)
    for count, field in fields:
        high = max(height * field / contestants, 3)
        s.rect(x, top + height - high, count * scale, high, "c1", rx=0)
        middle = x + count * scale / 2
        s.text(max(middle, 66), top + height - high - 8, f"{field}", "bold", size=14)
        s.text(middle, top + height + 18, f"{count}", "muted", size=13)
        x += count * scale
    s.text(320, top + height + 42, tr("rounds of each heat", "每个赛段的轮数"))
    s.text(60, 18, tr("contestants", "参赛者"), "", "start")
    listed = ", ".join(f"{field} x {count}" for count, field in fields)
    alt = tr(
        f"Heats of contestants x rounds: {listed}. Together {spent} runs, where {rounds[-1]} rounds for all would take {whole}.",
        f"各赛段的参赛者 x 轮数：{listed}。一共 {spent} 次运行；如果全体各跑 {rounds[-1]} 轮，要 {whole} 次。",
    )
    caption = tr(
        f"Few rounds for all, more for the best: {spent:,} runs instead of {whole:,} for {rounds[-1]} rounds of all.",
        f"全体少跑，最好的多跑：共 {spent:,} 次运行；全体各跑 {rounds[-1]} 轮则要 {whole:,} 次。",
    )
    return figure(s, alt=alt, caption=caption)
