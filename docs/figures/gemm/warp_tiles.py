"""Warp tiles drawn from the index arithmetic: where warps stand in a block's tile, lanes in a warp's, and who waits when."""

from cudatut.site.drawing import Grid, Lanes, Svg, figure, legend, tr


def tiles(
    bm: int = 128,
    bn: int = 128,
    shapes: tuple[tuple[int, int], ...] = ((16, 128), (32, 64), (64, 32)),
    shown: int = 2,
) -> str:
    """The tiles of a block's warps to scale; for one warp, the words of A and B that it needs at one depth."""
    scale, gap, top, strip = 1.25, 40, 54, 12
    side = bn * scale
    panel = side + strip + gap
    s = Svg(14 + panel * len(shapes), top + bm * scale + 58)
    told = []
    for p, (wm, wn) in enumerate(shapes):
        x0 = 10 + p * panel + strip + 6
        s.text_from(x0 - strip - 6, 18, f"{wm} × {wn}", "bold")
        cells = Grid(s, x0, top, wn * scale, wm * scale, gap=2, rx=0)
        wordy = wn * scale > 60 and wm * scale > 18
        for warp in range(bm * bn // (wm * wn)):
            name = tr(f"warp {warp}", f"束 {warp}") if wordy else warp
            cells.box(*divmod(warp, bn // wn), "c2" if warp == shown else "c0", name)
        x, y = cells.corner(*divmod(shown, bn // wn))
        s.rect(x0 - strip - 4, y, strip, wm * scale - 2, "c1 solid", rx=0)
        s.rect(x, top - strip - 4, wn * scale - 2, strip, "c3 solid", rx=0)
        words, fmas = wm + wn, wm * wn
        told.append((wm, wn, words, words / fmas))
        each = tr(f"{words / fmas:.3f} per FMA", f"每次 FMA {words / fmas:.3f} 个")
        s.text_from(x0, top + bm * scale + 22, tr(f"{words} words", f"{words} 个元素"))
        s.text_from(x0, top + bm * scale + 44, each)
    listed = "; ".join(f"{m} x {n}: {w} words, {each:.3f} per FMA" for m, n, w, each in told)
    alt = tr(
        f"A tile of {bm} x {bn} divided among warps in {len(shapes)} ways. Words that a warp needs at one depth: {listed}.",
        f"{bm} × {bn} 的分块按 {len(shapes)} 种方式分给线程束。线程束在每个 k 上要读的元素："
        + "；".join(f"{m} × {n}：{w} 个，每次 FMA {each:.3f} 个" for m, n, w, each in told)
        + "。",
    )
    caption = tr(
        f"To scale. At the edges: the words of A (left) and of B (above) that warp {shown} needs at one depth.",
        f"按比例绘制。边上是线程束 {shown} 在每个 k 上要读的 A 的元素（左）和 B 的元素（上）。",
    )
    return figure(s, alt=alt, caption=caption)


def gather(bits: int, lane: int) -> int:
    """The bits of a lane's number that the mask selects, pushed together."""
    chosen = [bit for bit in range(5) if bits >> bit & 1]
    return sum((lane >> bit & 1) << to for to, bit in enumerate(chosen))


def lanes(masks: tuple[int, ...] = (0b00111, 0b01110)) -> str:
    """Where the lanes of a warp stand, for numberings by rows and in pairs; a color is a group of eight lanes."""
    cell, gap, top = 40, 30, 34
    columns = 8
    s = Svg(2 * (columns * cell + gap), top + 4 * cell + 18)
    names = (tr("by rows", "按行编号"), tr("in pairs", "成对编号"))
    told = []
    for p, (mask, name) in enumerate(zip(masks, names)):
        cells = Grid(s, 8 + p * (columns * cell + gap), top, cell)
        s.text_from(cells.x, 18, name, "bold")
        grid = {}
        for lane in range(32):
            x, y = gather(mask, lane), gather(31 & ~mask, lane)
            grid[y, x] = lane
            cells.box(y, x, f"c{1 + lane // 8}", lane)
        told.append((name, [grid[0, x] for x in range(columns)]))
    listed = "; ".join(f"{name}: {row}" for name, row in told)
    alt = tr(
        f"32 lanes in 4 rows of 8, numbered in two ways. First rows: {listed}.",
        f"32 个 lane 排成 4 行 8 列，两种编号。第一行分别是：{listed}。",
    )
    caption = tr(
        "Each box is a lane with its first four columns. Lanes in a column need the same words of B, lanes in a row the same of "
        "A. A color is a group of eight lanes, which a load of four words per lane serves together.",
        "每个方块是一个 lane（图中只画前四列）。同列的 lane 读 B 的同样几个元素，同行的 lane 读 A 的同样几个元素。一种颜色是一组八个 lane；每个 lane 读四个元素时，一次处理一组。",
    )
    return figure(s, alt=alt, caption=caption)


def schedule(warps: int, loads: int, wait: int, fmas: int, cycles: int) -> list[list[str]]:
    """What each warp does in each cycle, if one of them may issue: 'load', 'wait', 'fma', or 'turn' (ready, not chosen).

    A warp loads, waits for the words, computes, and begins again. The scheduler keeps to a warp for as long as it can,
    then takes the next one that is ready.
    """
    state = [
        [0, 0] for _ in range(warps)
    ]  # instructions issued in this round; cycle when it may go on
    done: list[list[str]] = [[] for _ in range(warps)]
    current = 0
    for cycle in range(cycles):
        ready = [w for w in range(warps) if state[w][1] <= cycle]
        if current not in ready and ready:
            current = min(ready, key=lambda w: (w - current) % warps)
        for w in range(warps):
            issued, until = state[w]
            if until > cycle:
                done[w].append("wait")
            elif w != current:
                done[w].append("turn")
            else:
                done[w].append("load" if issued < loads else "fma")
                state[w][0] = issued = issued + 1
                if issued == loads:
                    state[w][1] = cycle + 1 + wait
                elif issued == loads + fmas:
                    state[w][0] = 0
    return done


def turns(loads: int = 4, wait: int = 30, fmas: int = 64, cycles: int = 300) -> str:
    """One scheduler with one warp and with four: loads, waits, FMAs in time, and which issue slots are used."""
    scale, left, row = 2.0, 96, 24
    s = Svg(left + cycles * scale + 6, 268)
    tints = {"load": "c3 solid", "wait": "hollow dash muted", "fma": "c1", "turn": "c0"}
    y, told = 8, []
    for warps in (1, 4):
        done = schedule(warps, loads, wait, fmas, cycles)
        lanes = Lanes(s, left, y, scale, row, gap=(0.5, 4), rx=0)
        for w, line in enumerate(done):
            lanes.name(w, tr(f"warp {w}", f"线程束 {w}"), "", away=8).runs(w, line, tints.get)
        used = [any(one in ("load", "fma") for one in each) for each in zip(*done)]
        y += row * warps
        lanes.name(warps, tr("slots", "发射槽"), "bold", away=8)
        slots = Lanes(s, left, y + 4, scale, row - 4, gap=(0.5, 4), rx=0)
        slots.runs(0, used, {True: "c2 solid"}.get)
        told.append((warps, used.count(True)))
        y += row + 30
    names = (
        ("load", tr("loads", "读取")),
        ("wait", tr("waits for words", "等数据")),
        ("fma", tr("FMAs", "FMA")),
        ("turn", tr("waits for its turn", "等轮到自己")),
    )
    legend(s, left, y - 6, [(tints[kind], name) for kind, name in names], step=140)
    listed = "; ".join(f"{w}: {n} / {cycles}" for w, n in told)
    alt = tr(
        f"Issue slots of one scheduler over {cycles} cycles. A warp loads ({loads}), waits ({wait} cycles), computes ({fmas} FMAs). "
        f"Slots used, by number of warps: {listed}.",
        f"一个调度器 {cycles} 个周期的发射槽。线程束读取（{loads} 条）、等待（{wait} 个周期）、计算（{fmas} 次 FMA）。按线程束个数，用掉的槽：{listed}。",
    )
    caption = tr(
        f"A model: {loads} loads, {wait} cycles until the words are there, {fmas} FMAs, and again. One warp uses {told[0][1]} of "
        f"{cycles} slots, four use {told[1][1]}.",
        f"一个模型：{loads} 条读取，{wait} 个周期后数据到达，{fmas} 次 FMA，如此往复。{cycles} 个槽里，一个线程束用掉 {told[0][1]} 个，四个用掉 {told[1][1]} 个。",
    )
    return figure(s, alt=alt, caption=caption)
