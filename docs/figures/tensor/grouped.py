"""Figures of the chapter on grouped products: rows sorted by expert, and the tiles of a loop beside those of one launch."""

from itertools import accumulate

from cudatut.site.drawing import Grid, Kind, Svg, figure, hue, tr


def stack(counts: tuple[int, ...] = (3, 1, 0, 5, 2)) -> str:
    """Rows of x and of the result, a color for each expert, and between them the experts' weights."""
    row, top, wide = 18, 48, 150
    rows, groups = sum(counts), len(counts)
    ends = list(accumulate(counts))
    step = max(rows * row / groups, 34)
    high = max(rows * row, groups * step)
    left, x_w, x_c = 140, 335, 535
    s = Svg(690, top + high + 30)
    names = (
        tr("x: rows × k", "x：行数 × k"),
        tr("weights: groups × n × k", "weights：组数 × n × k"),
        tr("out: rows × n", "out：行数 × n"),
    )
    for x, name in zip((left, x_w, x_c), names):
        s.text_from(x, 20, name, "bold")
    for g, (count, end) in enumerate(zip(counts, ends, strict=True)):
        y_w = top + g * step
        s.rect(x_w, y_w, wide, step - 6, hue(g), tr(f"expert {g}", f"专家 {g}"), rx=2)
        for y in range(top + (end - count) * row, top + end * row, row):
            s.rect(left, y, wide, row - 2, hue(g), rx=1).rect(x_c, y, wide, row - 2, hue(g), rx=1)
        if g + 1 == groups or ends[g + 1] > end:  # groups without rows end together
            same = [i for i in range(groups) if ends[i] == end]
            equal = " = ".join(f"ends[{i}]" for i in same)
            s.text_to(left - 8, top + end * row - 3, f"{equal} = {end}", "muted", 11)
        if count:
            middle = top + (end - count / 2) * row
            s.arrow(left + wide + 4, middle, x_w - 4, y_w + step / 2, "muted")
            s.arrow(x_w + wide + 4, y_w + step / 2, x_c - 4, middle, "muted")
    given = ", ".join(map(str, counts))
    alt = tr(
        f"{rows} rows of x sorted by expert; the {groups} experts get {given} of them. Each part is multiplied by the weights of its expert and "
        "gives the same rows of the result.",
        f"x 的 {rows} 行按专家排序，{groups} 个专家分别得到 {given} 行。每一部分与对应专家的权重相乘，得到结果里对应的几行。",
    )
    caption = tr(
        "Rows sorted by expert: ends says where the rows of each expert end. An expert may have none.",
        "按专家排序的行：ends 记录每个专家的行在哪里结束。有的专家可能一行也没有。",
    )
    return figure(s, alt=alt, caption=caption)


def waves(tiles: tuple[int, ...] = (3, 1, 5, 2), sms: int = 4) -> str:
    """The tiles of groups on SMs over time: one group after the other, and all as one list."""
    cell, height, left, top, gap = 42, 26, 62, 40, 60
    one_by_one, at = [], 0
    for g, count in enumerate(tiles):
        one_by_one += [(at + t // sms, t % sms, g) for t in range(count)]
        at += -(-count // sms)
    everything = [g for g, count in enumerate(tiles) for _ in range(count)]
    together = [(t // sms, t % sms, g) for t, g in enumerate(everything)]
    last = -(-len(everything) // sms)
    s = Svg(left + at * cell + gap + last * cell + 30, top + sms * (height + 6) + 34)
    for x0, length, title, placed in (
        (left, at, tr("a loop", "循环"), one_by_one),
        (left + at * cell + gap, last, tr("one launch", "分组 kernel"), together),
    ):
        s.text_from(x0, 20, title, "bold")
        cells = Grid(s, x0, top, cell, height + 6, gap=(3, 6))
        used: dict[tuple[int, int], Kind] = {(sm, when): (hue(g), g) for when, sm, g in placed}
        for sm in range(sms):
            cells.row(sm, [used.get((sm, when), "hollow") for when in range(length)])
        for sm in range(sms if x0 == left else 0):
            cells.name(sm, f"SM {sm}", "", 12)
        y = top + sms * (height + 6) + 16
        s.text_from(x0, y, tr(f"{length} waves", f"{length} 个波次"), "muted", 12)
    alt = tr(
        f"{len(tiles)} groups with {', '.join(map(str, tiles))} tiles on {sms} SMs. One group after the other takes {at} waves, all as one list {last}.",
        f"{len(tiles)} 个组，分块数分别为 {', '.join(map(str, tiles))}，在 {sms} 个 SM 上运行。逐组计算要 {at} 个波次，合成一个列表只要 {last} 个。",
    )
    caption = tr(
        "The number is the group of a tile; an empty box is an SM without work. In a loop every product has a last wave of its own.",
        "数字是分块所属的组；空框表示 SM 空闲。用循环时，每次乘法都有自己的最后一个波次，往往占不满所有 SM。",
    )
    return figure(s, alt=alt, caption=caption)
