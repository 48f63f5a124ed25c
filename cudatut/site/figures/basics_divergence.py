"""Drawings of divergence: branches add up, loops take the longest, and where lanes meet again."""

from __future__ import annotations

from cudatut.site import references
from cudatut.site.svg import Svg, figure, tr

EXAMPLE = "basics/divergence"


def sum_and_max(
    sides: tuple[int, ...] = (0, 1, 0, 2, 1, 0, 2, 0),
    length: tuple[int, ...] = (3, 1, 2),
    turns: tuple[int, ...] = (2, 5, 1, 3, 4, 1, 2, 3),
) -> str:
    """Left: lanes on `sides`, side k takes `length[k]` steps. Right: lanes that make `turns` turns of a loop."""
    cell, row, gap, top = 34, 24, 70, 52
    lanes = len(sides)
    paths = sorted(set(sides))
    steps = [side for side in paths for _ in range(length[side])]
    height = max(len(steps), max(turns))
    s = Svg(20 + 2 * lanes * cell + gap, top + height * row + 34)
    for panel, title in enumerate(
        (
            tr("branches: one path after the other", "分支：一条路径接着一条"),
            tr("a loop: until the last lane is done", "循环：等最后一个 lane 跑完"),
        )
    ):
        x0 = 6 + panel * (lanes * cell + gap)
        s.text(x0, 18, title, "bold", "start")
        for lane in range(lanes):
            s.text(x0 + lane * cell + cell / 2, 42, lane, "muted", size=13)
        rows = steps if panel == 0 else range(max(turns))
        for at, step in enumerate(rows):
            for lane in range(lanes):
                active = sides[lane] == step if panel == 0 else at < turns[lane]
                hue = f"c{1 + step % 6}" if panel == 0 else "c3"
                s.rect(
                    x0 + lane * cell, top + at * row, cell - 3, row - 3,
                    hue if active else "hollow dash muted", rx=2,
                )  # fmt: skip
        busy = sum(length[side] for side in sides) if panel == 0 else sum(turns)
        total = lanes * (len(steps) if panel == 0 else max(turns))
        text = tr(f"{busy} of {total} lane slots used", f"{total} 个位置用了 {busy} 个")
        s.text(x0, top + height * row + 22, text, "muted", "start")
    alt = tr(
        f"Two grids of {lanes} lanes over time. With branches of {', '.join(str(length[p]) for p in paths)} steps the warp takes their sum, {len(steps)} steps; "
        f"with a loop of {', '.join(map(str, turns))} turns it takes the maximum, {max(turns)}.",
        f"两幅时间图，各 {lanes} 个 lane。各条分支长 {'、'.join(str(length[p]) for p in paths)} 步，线程束要走它们之和 {len(steps)} 步；"
        f"循环圈数为 {'、'.join(map(str, turns))}，线程束走最大的 {max(turns)} 圈。",
    )
    caption = tr(
        f"Time runs down; dashed lanes are off. Left the sum of the different paths, {len(steps)} steps; right the maximum over the lanes, {max(turns)} turns.",
        f"时间向下，虚线表示 lane 空闲。左：不同路径之和，{len(steps)} 步；右：各 lane 的最大值，{max(turns)} 圈。",
    )
    return figure(s, alt=alt, caption=caption)


def lock(lanes: int = 4) -> str:
    """Lanes of one warp and one lock: lock-step never ends, independent scheduling takes them in turn."""
    cell, row, left = 92, 34, 96
    columns = lanes + 1
    s = Svg(left + columns * cell + 20, 2 * (40 + lanes * row) + 20)
    titles = (
        tr("lock-step: the winner waits for the losers", "锁步：赢家等输家"),
        tr("independent scheduling: the winner goes on", "独立调度：赢家先走"),
    )
    for panel, title in enumerate(titles):
        y0 = 18 + panel * (40 + lanes * row)
        s.text(4, y0, title, "bold", "start")
        for lane in range(lanes):
            y = y0 + 12 + lane * row
            s.text(4, y + 20, f"lane {lane}", "muted", "start")
            for at in range(columns):
                x = left + at * cell
                if panel == 0:
                    state = ("take" if at == 0 else "wait") if lane == 0 else "spin"
                else:
                    state = "spin" if at < lane else "take" if at == lane else "wait"
                text = {
                    "take": tr("has lock", "持锁"),
                    "wait": tr("waits", "等待"),
                    "spin": tr("spins", "自旋"),
                }[state]
                cls = {"take": "c3", "wait": "hollow muted", "spin": "c2"}[state]
                s.rect(x, y, cell - 4, row - 6, cls, text, size=13)
    alt = tr(
        f"{lanes} lanes of one warp. In lock-step lane 0 has the lock and waits at the meeting point, the others spin for ever. "
        "Scheduled independently, each lane takes the lock in turn and then waits at the meeting point.",
        f"同一线程束的 {lanes} 个 lane。锁步执行时 lane 0 拿着锁在汇合点等，其他 lane 永远自旋；独立调度时，各 lane 依次拿锁，然后在汇合点等待。",
    )
    caption = tr(
        "Time runs to the right. Above, nobody gives the lock back: the code that would do so stands behind the meeting point.",
        "时间向右。上图里没有人归还锁：归还锁的代码在汇合点之后。",
    )
    return figure(s, alt=alt, caption=caption)


def shapes_table() -> str:
    """Markdown: what the machine code of four kernels with an `if` holds, from the recording."""
    rows = {
        "instructions": tr("instructions", "指令"),
        "predicated EXIT": tr("`EXIT` with a predicate", "带谓词的 `EXIT`"),
        "other predicated": tr("others with a predicate", "其他带谓词的指令"),
        "minimum, maximum, select": tr("minimum, maximum, select", "取小、取大、选择"),
        "branches forward": tr("branches forward", "往前跳的分支"),
        "branches back": tr("branches back", "往回跳的分支"),
        "meeting points (BSYNC)": tr("meeting points, `BSYNC`", "汇合点 `BSYNC`"),
    }
    kernels = ("short_if", "nested_if", "long_if", "loop_if")
    lines = [f"| | {' | '.join(f'`{k}`' for k in kernels)} |", "|---|---:|---:|---:|---:|"]
    for row, name in rows.items():
        counts = [references.value(f'{EXAMPLE}#shapes["{k}: {row}"].value') for k in kernels]
        lines.append(f"| {name} | {' | '.join(str(count) for count in counts)} |")
    return "\n".join(lines)


def ways_table() -> str:
    """Markdown: sides per warp and the time relative to one side, from the recording."""
    rows = {
        "one side": tr("all lanes the same", "全部相同"),
        "two sides": tr("two in turn", "两种轮流"),
        "four sides": tr("four in turn", "四种轮流"),
        "eight sides": tr("eight in turn", "八种轮流"),
        "random": tr("random", "随机"),
    }
    lines = [
        tr(
            "| sides of neighboring lanes | sides per warp: predicted time | measured time |",
            "| 相邻 lane 所走的分支 | 每个线程束的分支数，即预测时间 | 实测时间 |",
        ),
        "|---|---:|---:|",
    ]
    for row, name in rows.items():
        predicted, measured = (
            references.value(f'{EXAMPLE}#ways-compare.0["{row}, {kind}"].value')
            for kind in ("predicted", "measured")
        )
        lines.append(f"| {name} | {predicted:.2f} | {measured:.2f} |")
    return "\n".join(lines)
