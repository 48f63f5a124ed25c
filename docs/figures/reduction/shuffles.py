"""Drawings of the chapter on shuffles: which lane reads which, and the steps of a block's sum."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def halves(lanes: int = 32) -> list[int]:
    """The distances of the steps: 16, 8, 4, 2, 1 for a warp."""
    return [lanes >> (k + 1) for k in range(lanes.bit_length() - 1)]


def needed(lanes: int, butterfly: bool) -> list[set[int]]:
    """Before the first step and after each: the lanes whose value still reaches a final sum that is used."""
    if butterfly:
        return [set(range(lanes))] * (len(halves(lanes)) + 1)
    return [set(range(lanes)), *(set(range(half)) for half in halves(lanes))]


def _tree(lanes: int, butterfly: bool) -> Svg:
    left, cell, row = 62, 20, 54
    steps, used = halves(lanes), needed(lanes, butterfly)
    s = Svg(left + cell * lanes + 10, 40 + row * len(steps) + 22)

    def at(lane: int, level: int) -> tuple[float, float]:
        return left + cell * lane + cell / 2, 34 + row * level

    for quiet in (True, False):  # the lines that matter on top
        for k, half in enumerate(steps):
            for lane in range(lanes):
                matters = lane in used[k + 1]
                if matters == quiet:
                    continue
                source = lane ^ half if butterfly else lane + half
                cls = "accent" if matters else "grid"
                if source < lanes:
                    s.line(*at(source, k), *at(lane, k + 1), cls)
                s.line(*at(lane, k), *at(lane, k + 1), cls)
    heads = Grid(s, left, 34, cell, gap=0, size=13)
    heads.heads({k: k for k in range(lanes) if k % 4 == 0 or k == lanes - 1}, up=18)
    for k in range(len(steps) + 1):
        if k:
            s.text_to(left - 12, at(0, k)[1] + 5, steps[k - 1], "mono")
        for lane in range(lanes):
            final = k == len(steps) and lane in used[k]
            cls = "c3 solid" if final else "c1" if lane in used[k] else "hollow dash muted"
            s.circle(*at(lane, k), 7, cls)
    s.text_to(left - 12, 16, "lane", "muted")
    return s


def tree(lanes: int = 32) -> str:
    """`__shfl_down_sync`: the lanes that lane 0's sum is made of."""
    adds = sum(len(level) for level in needed(lanes, False)[1:])
    alt = tr(
        f"Tree over {lanes} lanes in {len(halves(lanes))} steps at distances {', '.join(map(str, halves(lanes)))}. In each step a lane adds "
        "the value of the lane that many places to its right. Half of the lanes that still matter drop out; in the end lane 0 holds the sum.",
        f"{lanes} 个 lane 按树形求和，共 {len(halves(lanes))} 步，距离依次为 {'、'.join(map(str, halves(lanes)))}。每一步，一个 lane 加上右边相隔这么远的 lane 的值，"
        "有用的 lane 减半，最后 lane 0 得到总和。",
    )
    caption = tr(
        f"`__shfl_down_sync`, distance on the left. All {lanes} lanes execute every step, {lanes * len(halves(lanes))} additions; "
        f"the {adds} of the strong lines are those that lane 0 needs.",
        f"`__shfl_down_sync`，左边是距离。{lanes} 个 lane 每一步都执行，共 {lanes * len(halves(lanes))} 次加法；lane 0 用得上的只有深色线上的 {adds} 次。",
    )
    return figure(_tree(lanes, False), alt=alt, caption=caption)


def butterfly(lanes: int = 32) -> str:
    """`__shfl_xor_sync`: every lane ends with the sum."""
    alt = tr(
        f"Butterfly over {lanes} lanes in {len(halves(lanes))} steps: lanes whose numbers differ in one bit exchange values. In the end all {lanes} hold the sum.",
        f"{lanes} 个 lane 的蝶形交换，共 {len(halves(lanes))} 步：编号只有一个二进制位不同的两个 lane 互换数值，最后 {lanes} 个 lane 都得到总和。",
    )
    caption = tr(
        "`__shfl_xor_sync`: as many instructions as the tree, and no lane works for nothing.",
        "`__shfl_xor_sync`：指令数与树形相同，但没有一个 lane 白做。",
    )
    return figure(_tree(lanes, True), alt=alt, caption=caption)


def block_sum(warps: int = 8) -> str:
    """The steps of `block_sum`: shuffles in every warp, one store each, one barrier, and warp 0 once more."""
    left, width, height, y = 84, 700, 22, 30
    steps = [*halves(32), None, *halves(32)]  # None: the stores and the barrier between
    step = (width - left - 10) / (len(steps) + 1)
    s = Svg(width, y + height * warps + 50)
    half, below = len(halves(32)), y + height * warps + 20
    boxes = Grid(s, left + 2, y, step, height, gap=(5, 4), size=13)
    for w in range(warps):
        boxes.name(w, tr(f"warp {w}", f"线程束 {w}"), away=12)
    for k, distance in enumerate(steps):
        column = k if k <= half else k + 1  # between them warp 0 reads
        for w in range(warps if k <= half else 1):
            boxes.box(w, column, "c1" if distance else "c2")
        s.text(boxes.center(0, column)[0], below, distance or tr("store", "写"), "muted", size=13)
    x = left + step * (half + 1)
    s.line(x, y - 8, x, below - 18, "warn").rect(x + 4, y, step - 9, height - 4, "c2", rx=2)
    s.text(x + step / 2, below, tr("read", "读"), "muted", size=13)
    alt = tr(
        f"Timeline of {warps} warps. Each makes {half} shuffles and stores one word; after one barrier warp 0 reads {warps} words and makes {half} more shuffles.",
        f"{warps} 个线程束的时间线。每个线程束做 {half} 次洗牌、写一个部分和；经过一次屏障，线程束 0 读出 {warps} 个部分和，再做 {half} 次洗牌。",
    )
    caption = tr(
        f"{warps * half + half} shuffles, {warps} stores of one word, one barrier (the line), one load.",
        f"{warps * half + half} 次洗牌，{warps} 次写入（每次一个部分和），一次屏障（竖线），一次读取。",
    )
    return figure(s, alt=alt, caption=caption)
