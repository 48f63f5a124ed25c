"""Drawings of divergence: branches add up, loops take the longest, and where lanes meet again."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr


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
            tr("branches: one side after the other", "分支：一个接着一个"),
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
        f"Time runs down; dashed lanes are off. Left: the sum over the different sides, {len(steps)} steps. Right: the maximum over the lanes, {max(turns)} turns.",
        f"时间向下，虚线表示 lane 不工作。左：各个不同分支之和，{len(steps)} 步。右：各 lane 圈数的最大值，{max(turns)} 圈。",
    )
    return figure(s, alt=alt, caption=caption)


def lock(lanes: int = 4) -> str:
    """Lanes of one warp and one lock: in step they never end, independent lanes take it in turn."""
    cell, row, left = 92, 34, 96
    columns = lanes + 1
    s = Svg(left + columns * cell + 20, 2 * (40 + lanes * row) + 20)
    titles = (
        tr(
            "in step: the lane with the lock waits for the others",
            "步调一致：有锁的 lane 等其他 lane",
        ),
        tr("independent lanes: the lane with the lock goes on", "lane 各自前进：有锁的 lane 先走"),
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
        f"{lanes} lanes of one warp. In step, lane 0 has the lock and waits at the meeting point, and the others spin for ever. "
        "If the lanes are independent, each takes the lock in turn and then waits at the meeting point.",
        f"同一线程束的 {lanes} 个 lane。步调一致时，lane 0 拿着锁在汇合点等待，其他 lane 永远自旋；lane 各自前进时，依次拿锁，然后在汇合点等待。",
    )
    caption = tr(
        "Time runs to the right. In the upper part no lane gives the lock back, because that code stands behind the meeting point.",
        "时间向右。上半部分没有 lane 归还锁，因为归还锁的代码在汇合点之后。",
    )
    return figure(s, alt=alt, caption=caption)
