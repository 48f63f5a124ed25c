"""Drawings of divergence: branches add up, loops take the longest, and where lanes meet again."""

from cudatut.site.drawing import Grid, Svg, figure, hue, tr


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
    panels = (
        (
            tr("branches: one side after the other", "分支：一个接着一个"),
            [[hue(step) if side == step else None for side in sides] for step in steps],
        ),
        (
            tr("a loop: until the last lane is done", "循环：等最后一个 lane 跑完"),
            [["c3" if at < mine else None for mine in turns] for at in range(max(turns))],
        ),
    )
    for panel, (title, rows) in enumerate(panels):
        cells = Grid(s, 6 + panel * (lanes * cell + gap), top, cell, row)
        s.text_from(cells.x, 18, title, "bold")
        cells.heads(range(lanes), size=13)
        for at, kinds in enumerate(rows):
            cells.row(at, [kind or "hollow dash muted" for kind in kinds])
        busy, total = sum(lanes - kinds.count(None) for kinds in rows), lanes * len(rows)
        text = tr(f"{busy} of {total} lane slots used", f"{total} 格用了 {busy} 格")
        s.text_from(cells.x, top + height * row + 22, text, "muted")
    alt = tr(
        f"Two grids of {lanes} lanes over time. With branches of {', '.join(str(length[p]) for p in paths)} steps the warp takes their sum, {len(steps)} steps; "
        f"with a loop of {', '.join(map(str, turns))} turns it takes the maximum, {max(turns)}.",
        f"两幅时间图，各 {lanes} 个 lane。各条分支长 {'、'.join(str(length[p]) for p in paths)} 步，线程束一共要走 {len(steps)} 步，即各条分支之和；"
        f"循环圈数为 {'、'.join(map(str, turns))}，线程束走最大的 {max(turns)} 圈。",
    )
    caption = tr(
        f"Time runs down; dashed lanes are off. Left: the sum over the different sides, {len(steps)} steps. Right: the maximum over the lanes, {max(turns)} turns.",
        f"时间从上往下，虚线表示 lane 不工作。左：各个不同分支之和，{len(steps)} 步。右：各 lane 圈数的最大值，{max(turns)} 圈。",
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
    take, wait = ("c3", tr("has lock", "持锁")), ("hollow muted", tr("waits", "等待"))
    spin = ("c2", tr("spins", "自旋"))
    for panel, title in enumerate(titles):
        y = 18 + panel * (40 + lanes * row)
        s.text_from(4, y, title, "bold")
        cells = Grid(s, left, y + 12, cell, row, gap=(4, 6), rx=4, size=13)
        for lane in range(lanes):
            cells.named(lane, 4, f"lane {lane}")
            if panel == 0:
                cells.row(lane, [spin] * columns if lane else [take] + [wait] * lanes)
            else:
                cells.row(lane, [spin] * lane + [take] + [wait] * (lanes - lane))
    alt = tr(
        f"{lanes} lanes of one warp. In step, lane 0 has the lock and waits at the meeting point, and the others spin for ever. "
        "If the lanes are independent, each takes the lock in turn and then waits at the meeting point.",
        f"同一线程束的 {lanes} 个 lane。步调一致时，lane 0 拿着锁在汇合点等待，其他 lane 永远自旋；lane 各自前进时，依次拿锁，然后在汇合点等待。",
    )
    caption = tr(
        "Time runs to the right. In the upper part no lane gives the lock back, because that code stands behind the meeting point.",
        "时间从左往右。上半部分没有 lane 释放锁，因为释放锁的代码在汇合点之后。",
    )
    return figure(s, alt=alt, caption=caption)
