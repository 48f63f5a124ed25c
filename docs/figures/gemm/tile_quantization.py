"""Drawings of schedules: tiles in waves, tiles split along the depth, and one line of steps cut into equal pieces."""

from cudatut.site.drawing import Axes, Lanes, Svg, figure, hue, linear, tr


def _pieces(tiles: int, steps: int, blocks: int) -> list[list[tuple[int, int, int]]]:
    """Of every block its pieces (tile, first step, end): all steps in one line, cut evenly."""
    total = tiles * steps
    found: list[list[tuple[int, int, int]]] = []
    for block in range(blocks):
        at, end = total * block // blocks, total * (block + 1) // blocks
        found.append([])
        while at < end:
            tile, first = divmod(at, steps)
            last = min(steps, first + end - at)
            found[-1].append((tile, first, last))
            at += last - first
    return found


def schedules(tiles: int = 5, sms: int = 4, steps: int = 8, splits: int = 2) -> str:
    """What each SM does when: whole tiles, every tile split, stream-K."""
    whole = [[(t, 0, steps) for t in range(sm, tiles, sms)] for sm in range(sms)]
    part = steps // splits
    halves = [(t, s * part, (s + 1) * part) for t in range(tiles) for s in range(splits)]
    split = [halves[sm::sms] for sm in range(sms)]
    panels = (
        (tr("a block per tile", "每个分块一个线程块"), whole),
        (tr(f"split-K, {splits} blocks per tile", f"split-K，每个分块 {splits} 个线程块"), split),
        (tr(f"stream-K, {sms} blocks", f"stream-K，共 {sms} 个线程块"), _pieces(tiles, steps, sms)),
    )
    longest = max(sum(e - f for _, f, e in lane) for _, lanes in panels for lane in lanes)
    left, row, unit = 60, 30, 560 / longest
    high = row * sms + 44
    s = Svg(700, high * len(panels) + 4)
    ends = []
    for number, (title, lanes) in enumerate(panels):
        top = number * high + 22
        end = max(sum(e - f for _, f, e in lane) for lane in lanes)
        ends.append(end)
        used = tiles * steps / (end * sms)
        said = tr(f": {end} steps, {used:.0%} busy", f"：{end} 步，利用率 {used:.0%}")
        s.text_from(left, top - 6, title + said, "bold")
        drawn = Lanes(s, left, top + 2, unit, row, gap=(0, 4))
        for sm, lane in enumerate(lanes):
            drawn.name(sm, f"SM {sm}", size=13, away=8)
            s.rect(left, top + 2 + sm * row, unit * end, row - 4, "hollow dash muted", rx=0)
            at = 0
            for tile, first, last in lane:
                shared = "" if last - first == steps else "*"
                drawn.bar(sm, at, at + last - first, hue(tile), f"{tile}{shared}")
                at += last - first
    alt = tr(
        f"{tiles} tiles of {steps} steps on {sms} SMs: {ends[0]} steps with a block per tile, {ends[1]} with split-K, {ends[2]} with stream-K.",
        f"{sms} 个 SM 上 {tiles} 个分块、每个 {steps} 步：每分块一个线程块要 {ends[0]} 步，split-K 要 {ends[1]} 步，stream-K 要 {ends[2]} 步。",
    )
    caption = tr(
        f"{tiles} tiles, {steps} steps of depth each, on {sms} SMs; time runs to the right, a star marks a part of a tile, whose sums have to "
        "be added up. Dashed: an SM without work.",
        f"{sms} 个 SM 上的 {tiles} 个分块，每个要沿 K 维走 {steps} 步；时间向右。星号表示只是分块的一部分，还要把部分和加起来。虚线框：SM 空闲。",
    )
    return figure(s, alt=alt, caption=caption)


def saw(sms: int = 132, most: int = 528) -> str:
    """Efficiency by the number of tiles, for one block per SM at a time."""
    left, top, width, height = 56, 14, 620, 180
    s = Svg(left + width + 20, top + height + 52)
    field = Axes(s, linear(0, most), linear(0, 1), left, left + width, top, top + height)
    field.y_ticks((0, 0.25, 0.5, 0.75, 1), ".0%").x_ticks(range(0, most + 1, sms), cls=None)
    points = [(0.0, 0.0)]
    for wave in range(-(-most // sms)):
        first, last = wave * sms + 1, min(most, (wave + 1) * sms)
        points += [(tiles, tiles / (sms * (wave + 1))) for tiles in (first, last)]
    field.curve(points).names(tr("tiles", "分块数"))
    worst = [(sms * w + 1) / (sms * (w + 1)) for w in range(1, most // sms)]
    lows = ", ".join(f"{w:.0%}" for w in worst)
    alt = tr(
        f"Efficiency over the number of tiles for {sms} SMs: a saw. It reaches 100 % at each multiple of {sms} and falls behind it to {lows}.",
        f"{sms} 个 SM 时效率随分块数的变化：锯齿形，在 {sms} 的每个倍数处达到 100 %，过后依次跌到 {lows}。",
    )
    caption = tr(
        f"Part of {sms} SMs at work, over all waves, when each has room for one block. One tile past a full wave: {lows}.",
        f"每个 SM 放得下一块时，{sms} 个 SM 在全部波次里的平均利用率。比满波多一个分块时：{lows}。",
    )
    return figure(s, alt=alt, caption=caption)
