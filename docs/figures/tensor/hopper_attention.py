"""Figures of the chapter on attention on Hopper: warpgroups that take turns, and what one product takes of a tile."""

from cudatut.site.drawing import Grid, Lanes, Svg, figure, tr


def turns(d: int = 128, keys: int = 128, softmax: int = 800, warpgroups: int = 2) -> str:
    """Products and softmax of the warpgroups of a block over time; `softmax` is a guess, in cycles."""
    product = 2 * d * 64 * keys // 4096  # cycles of each of the two products
    period = max(2 * product * warpgroups, product + softmax)
    span, left, top, row = 5 * period // 2, 150, 46, 38
    s = Svg(left + 560, top + (2 * warpgroups + 1) * row + 34)
    lanes = Lanes(s, left, top, 540 / span, row, gap=(1, 10), size=12)

    def bar(lane: int, start: int, length: int, cls: str, label: str) -> None:
        if start < span:
            lanes.bar(lane, start, min(start + length, span), cls, label, spare=True)

    for g in range(warpgroups):
        name = tr(f"warpgroup {g}: products", f"线程束组 {g}: 乘法")
        lanes.name(2 * g, name, "", away=12).name(2 * g + 1, "softmax", "", away=12)
        for start in range(g * 2 * product, span, period):
            bar(2 * g, start, product, f"c{1 + g}", "Q Kᵀ")
            bar(2 * g, start + product, product, f"c{1 + g} solid", "P V")
            bar(2 * g + 1, start + product, softmax, f"c{1 + g}", "softmax")
    units = 2 * warpgroups
    lanes.name(units, tr("tensor cores", "张量核心"), "bold", away=12)
    for turn, start in enumerate(range(0, span, 2 * product)):
        g = turn % warpgroups
        bar(units, start, product, f"c{1 + g}", str(g))
        bar(units, start + product, product, f"c{1 + g} solid", str(g))
    s.arrow(left, top - 16, left + 540, top - 16, "muted")
    s.text_from(left, top - 24, tr("time", "时间"), "muted", 12)
    alt = tr(
        f"Two warpgroups over time. While warpgroup 0 computes its softmax, the tensor cores finish its product P V and then do both products "
        f"of warpgroup 1, and the other way around. The tensor cores, drawn in a row of their own, always have work. Each product takes {product} "
        "cycles.",
        f"两个线程束组随时间的工作。线程束组 0 计算 softmax 时，张量核心做完线程束组 0 的 P V，接着做线程束组 1 的两次乘法；反过来也一样。"
        f"单独画出的一行里，张量核心从不空闲。每次乘法 {product} 个周期。",
    )
    caption = tr(
        f"Two warpgroups take turns, D = {d}, {keys} keys a step. Each product is drawn with the {product} cycles that it needs at least; the length "
        "of the softmax is a guess.",
        f"两个线程束组轮流，D = {d}，每步 {keys} 个键。每次乘法按至少需要的 {product} 个周期画出；softmax 的长度只是示意。",
    )
    return figure(s, alt=alt, caption=caption)


def pieces(step: int = 1) -> str:
    """A piece of 8 rows of a tile of keys and one of values, swizzled: what the product number `step` takes of it."""
    cell, left, top, gap = 36, 70, 66, 60
    s = Svg(left + 16 * cell + gap + 10, top + 8 * cell + 40)
    panels = (
        (
            tr("keys: depth runs along a row", "键：深度沿行方向"),
            tr(
                f"product {step}: elements {16 * step} to {16 * step + 15}",
                f"第 {step} 次乘法：元素 {16 * step} 到 {16 * step + 15}",
            ),
        ),
        (
            tr("values: depth runs from row to row", "值：深度沿列方向"),
            tr("one product: all 8 rows, and the next 8", "一次乘法：这 8 行，再加后面 8 行"),
        ),
    )
    chunks = tr("8 chunks of 16 bytes: 64 elements of a head", "8 个 16 字节的小段：头的 64 个元素")
    for panel, (title, below) in enumerate(panels):
        cells = Grid(s, left + panel * (8 * cell + gap), top, cell, size=12)
        middle = cells.x + 4 * cell
        s.text(middle, 20, title, "bold", size=13).text(middle, 42, chunks, "muted", size=12)
        for r in range(8):
            if panel == 0:
                cells.name(r, tr(f"key {r}", f"键 {r}"), "")
            of_row = [place ^ r for place in range(8)]
            if panel == 0:
                kinds = ["c3 solid" if chunk // 2 == step else "c0" for chunk in of_row]
            else:
                kinds = ["c2 solid"] * 8
            cells.row(r, zip(kinds, of_row))
        s.text(middle, top + 8 * cell + 22, below, "muted", size=12)
    alt = tr(
        f"Two pieces of eight rows of 128 bytes. In both, chunk c of row r stands at place c XOR r. Of keys, product {step} takes chunks "
        f"{2 * step} and {2 * step + 1} of each row, wherever they stand. Of values, a product takes all chunks of the eight rows.",
        f"两块各八行、每行 128 字节。两边都把第 r 行的 c 号小段放在 c XOR r 处。对于键，第 {step} 次乘法取每行的 {2 * step} 号和 {2 * step + 1} "
        "号小段，不论这些小段放在哪里；对于值，一次乘法取八行的全部小段。",
    )
    caption = tr(
        f"The same tile, two ways to read it. The numbers are chunks, swizzled. Left, `wgmma` number {step} of the scores takes 16 elements of 8 keys. "
        "Right, a `wgmma` of the values takes all 64 elements of 8 keys, and of the next 8.",
        f"同样的分块，两种读法。数字是小段的编号，已经过异或重排。左：算分数的第 {step} 条 `wgmma` 取 8 个键的 16 个元素。右：乘值的一条 `wgmma` "
        "取 8 个键的全部 64 个元素，再加后面 8 个键的。",
    )
    return figure(s, alt=alt, caption=caption)
