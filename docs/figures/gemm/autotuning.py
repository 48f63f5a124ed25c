"""Drawings of a search: what the rules leave, what luck looks like, and how a race spends its rounds."""

import json
import random
from pathlib import Path
from statistics import median

from cudatut.site.drawing import Axes, Svg, figure, legend, linear, tr

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
    """How many candidates each rule leaves on an H100 and on an RTX 3090, as bars.

    autotuning.json beside this file has what the chapter's rules leave; a test compares both.
    """
    gpus = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    left, width, step = 220, 380, 44
    s = Svg(700, 30 + step * len(gpus["H100"]))
    most = gpus["H100"][0][1]
    legend(s, left, 4, [("c1", "H100"), ("c2", "RTX 3090")], step=150, wide=14)
    for row, steps in enumerate(zip(*gpus.values())):
        y, name = 30 + step * row, steps[0][0]
        s.text_to(left - 10, y + 22, tr(name, _RULES[name]))
        for index, (_, count) in enumerate(steps):
            bar = max(width * count / most, 1)
            s.rect(left, y + 17 * index, bar, 15, f"c{index + 1}", rx=2)
            s.text_from(left + bar + 6, y + 13 + 17 * index, f"{count:,}", "muted", 13)
    ends = {gpu: steps[-1][1] for gpu, steps in gpus.items()}
    listed = tr(", ", "，").join(f"{gpu}{tr(': ', '：')}{count}" for gpu, count in ends.items())
    alt = tr(
        f"Of {most:,} candidates the rules leave one after another fewer; in the end {listed}.",
        f"{most:,} 个候选被规则逐条筛去，最后剩下 {listed}。",
    )
    caption = tr(
        f"Candidates left after each rule. Nothing was compiled for that. In the end: {listed}.",
        f"每条规则筛过之后剩下的候选；筛选时什么也不用编译。最后：{listed}。",
    )
    return figure(s, alt=alt, caption=caption)


def luck(names: int = 24, scatter: float = 2.0, rounds: tuple[int, ...] = (1, 5, 30)) -> str:
    """Equal candidates, each measured by the median of so many runs that scatter by some percent: the luckiest leads."""
    rng = random.Random(7)
    left, right, row = 130, 560, 56
    s = Svg(700, row * len(rounds) + 56)
    s, span, bottom = Svg(700, row * len(rounds) + 56), 2.6 * scatter, row * len(rounds) + 8
    field = Axes(s, linear(-span, span), linear(1, 0), left, right, 8, bottom)
    leads = []
    for index, count in enumerate(rounds):
        y = 26 + row * index
        found = sorted(median(rng.gauss(0, scatter) for _ in range(count)) for _ in range(names))
        s.line(left, y, right, y, "axis")
        for place, percent in enumerate(found):
            x = field.px(min(max(percent, -span), span))
            s.circle(x, y, 4.5 if place else 6, "c1 solid" if place else "c2 solid")
        leads.append(-found[0])
        s.text_to(left - 12, y + 5, tr(f"rounds: {count}", f"{count} 轮"))
        s.text_from(right + 12, y + 5, tr(f"lead {leads[-1]:.1f} %", f"领先 {leads[-1]:.1f} %"))
    s.line(field.px(0), 8, field.px(0), bottom, "dash muted")
    s.text(field.px(0), bottom + 18, tr("true time of all", "所有候选的真实时间"), "muted")
    s.text_from(left, bottom + 40, tr("faster", "更快"), "muted")
    s.text_to(right, bottom + 40, tr("slower", "更慢"), "muted")
    listed = tr(", ", "，").join(
        f"{count}{tr(': ', '：')}{lead:.1f} %" for count, lead in zip(rounds, leads)
    )
    alt = tr(
        f"{names} equally fast candidates, drawn from a random generator. The lead of the luckiest by rounds is {listed}.",
        f"{names} 个同样快的候选，由随机数生成。按轮数，运气最好者的领先为 {listed}。",
    )
    caption = tr(
        f"{names} candidates that are equally fast; single runs scatter by {scatter:g} %. The luckiest looks ahead by {listed} (rounds: lead).",
        f"{names} 个同样快的候选，单次运行的波动为 {scatter:g} %。看上去领先的幅度（轮数：幅度）：{listed}。",
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
        high, wide = max(height * field / contestants, 3), count * scale
        s.rect(x, top + height - high, wide, high, "c1", rx=0)
        s.text(max(x + wide / 2, 66), top + height - high - 8, field, "bold")
        s.text(x + wide / 2, top + height + 18, count, "muted", size=13)
        x += wide
    s.text(320, top + height + 42, tr("rounds of each heat", "每段的轮数"))
    s.text_from(60, 18, tr("contestants", "候选数"))
    listed = ", ".join(f"{field} x {count}" for count, field in fields)
    alt = tr(
        f"Heats of contestants x rounds: {listed}. Together {spent} runs, where {rounds[-1]} rounds for all would take {whole}.",
        f"各段的候选数 x 轮数：{listed}。一共 {spent} 次运行；如果全体各跑 {rounds[-1]} 轮，要 {whole} 次。",
    )
    caption = tr(
        f"Few rounds for all, more for the best: {spent:,} runs instead of {whole:,} for {rounds[-1]} rounds of all.",
        f"全体少跑，最好的多跑：共 {spent:,} 次运行；全体各跑 {rounds[-1]} 轮则要 {whole:,} 次。",
    )
    return figure(s, alt=alt, caption=caption)
