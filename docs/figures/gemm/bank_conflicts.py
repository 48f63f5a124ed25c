"""Banks of a matrix product's shared memory: who stores where, who reads where, with each of the layouts."""

from cudatut.site.drawing import BANKS, Grid, Svg, figure, tr

LANES, _ROW = range(32), 27


def swap_a(inner: int, row: int) -> int:
    """Where a row of A stands at a depth, as the kernel's place_a has it."""
    return row ^ inner // 4 % 2 * 16


def swap_b(column: int) -> int:
    """Where a column of B stands, as the kernel's place_b has it."""
    return column ^ column // 32 % 2 * 4


def _stack(boxes: list[tuple[int, int, object, str]]) -> tuple[list[tuple], int]:
    """(word, words, label, class) -> (bank, level, words, label, class): boxes in one bank stand on each other."""
    height, placed = [0] * BANKS, []
    for word, words, label, cls in boxes:
        banks = [(word + k) % BANKS for k in range(words)]
        level = max(height[bank] for bank in banks)
        for bank in banks:
            height[bank] = level + 1
        placed.append((banks[0], level, words, label, cls))
    return placed, max(height)


def _panels(panels: list[tuple[str, list[tuple]]], above: str) -> tuple[Svg, list[int]]:
    """Panels below each other, a column per bank; the drawing, and the passes of each panel."""
    placed = [_stack(boxes) for _, boxes in panels]
    left, gap = 4, 46
    s = Svg(left + BANKS * 20 + 4, 40 + sum(gap + high * _ROW for _, high in placed))
    s.text_from(left, 14, above, "muted")
    Grid(s, left, 40, 20, gap=2).heads({bank: bank for bank in range(0, BANKS, 4)}, up=8)
    y = 40
    for (name, _), (boxes, high) in zip(panels, placed):
        passed = tr(f"{name}: {high} pass{'es' * (high > 1)}", f"{name}：{high} 趟")
        s.text_from(left, y + 18, passed, "bold")
        Grid(s, left, y + 28, 20, _ROW, gap=(2, 3), rx=0).fill(high, BANKS, lambda *_: "c0")
        cells = Grid(s, left, y + 28, 20, _ROW, gap=(2, 3))
        for bank, level, words, label, cls in boxes:
            cells.box(level, bank, cls, label, across=words)
        y += gap + high * _ROW
    return s, [high for _, high in placed]


def stores(bm: int = 128, padding: int = 4) -> str:
    """One store of the turned tile of A by a warp: lane numbers in their banks, for three layouts."""

    def boxes(pitch: int, swap: bool) -> list[tuple]:
        found = []
        for lane in LANES:
            row, inner = lane // 2 % bm, lane % 2 * 4
            word = inner * pitch + (swap_a(inner, row) if swap else row)
            found.append((word, 1, lane, "c1" if inner == 0 else "c2"))
        return found

    wider = bm + padding
    layouts = (
        (tr(f"rows of {bm} words", f"每行 {bm} 个字"), bm, False),
        (tr(f"rows of {wider} words", f"每行 {wider} 个字"), wider, False),
        (tr(f"rows of {bm} words, swizzled", f"每行 {bm} 个字，异或重排"), bm, True),
    )
    panels = [(name, boxes(pitch, swap)) for name, pitch, swap in layouts]
    s, passed = _panels(panels, tr("bank", "存储体"))
    told = "; ".join(f"{name}: {n}" for (name, *_), n in zip(layouts, passed))
    alt = tr(
        f"The 32 words of one store As[inner][row] of warp 0 in their banks. Passes: {told}.",
        f"线程束 0 写一次 As[inner][row] 时，32 个字所在的存储体。趟数：{told}。",
    )
    caption = tr(
        "The first of the four stores of a turned row: lane numbers in the banks that they store to. Even lanes bring depth 0 "
        "of a row, odd lanes (the other color) depth 4 of the same row.",
        "转置写入要四次，图中是第一次：lane 号标在各 lane 写入的存储体里。偶数 lane 写某一行的深度 0，奇数 lane（另一种颜色）写同一行的深度 4。",
    )
    return figure(s, alt=alt, caption=caption)


def reads(bn: int = 128, tn: int = 8, depth: int = 1, padding: int = 4) -> str:
    """One group of 8 lanes reads four words each of Bs at one depth, for four layouts."""

    def boxes(pitch: int, apart: int, swap: bool) -> list[tuple]:
        found = []
        for lane in range(8):
            column = lane % (bn // tn) * apart
            word = depth * pitch + (swap_b(column) if swap else column)
            near = word // BANKS % 2 == depth * pitch // BANKS % 2
            found.append((word, 4, lane, "c1" if near else "c2"))
        return found

    wider = bn + padding
    longer = tr(f"the same, rows of {wider} words", f"同上，每行 {wider} 个字")
    kinds = (
        (tr("eight columns apart", "相隔八列"), bn, tn, False),
        (longer, wider, tn, False),
        (tr("the same, swizzled", "同上，异或重排"), bn, tn, True),
        (tr("four columns apart", "相隔四列"), bn, 4, False),
    )
    panels = [(name, boxes(pitch, apart, swap)) for name, pitch, apart, swap in kinds]
    s, passed = _panels(panels, tr(f"bank (depth {depth})", f"存储体（深度 {depth}）"))
    told = "; ".join(f"{name}: {n}" for (name, *_), n in zip(kinds, passed))
    alt = tr(
        f"Lanes 0 to 7 read four words each from Bs. Passes of this group: {told}.",
        f"lane 0 到 7 各从 Bs 读四个字。这一组的趟数：{told}。",
    )
    caption = tr(
        "Lanes 0 to 7, four words each, in their banks. Longer rows move all eight by the same distance: what collided still "
        "collides.",
        "lane 0 到 7 各读四个字，标在字所在的存储体里。行加长以后，八个 lane 一起移动同样的距离：原来有冲突的 lane，照旧有冲突。",
    )
    return figure(s, alt=alt, caption=caption)


def swizzle(columns: int = 64, tn: int = 8) -> str:
    """Groups of four columns of a row of Bs, in order and as the swizzle places them; tinted by the reading lane."""
    groups = columns // 4
    left = 104
    s = Svg(left + groups * 36 + 4, 150)
    order = [4 * g for g in range(groups)]
    placed = {swap_b(column): column for column in order}
    rows = (
        (tr("in order", "原来的次序"), order),
        (tr("swizzled", "重排之后"), [placed[place] for place in order]),
    )
    cells = Grid(s, left, 32, 36, 58, gap=(2, 22)).heads((at % BANKS for at in order), up=12)
    s.text_from(4, 20, tr("banks", "存储体"), "muted")
    for k, (name, row) in enumerate(rows):
        firsts = [column % tn == 0 for column in row]  # the first four of a lane's eight columns
        tints = ["c1" if column < BANKS else "c2" for column in row]
        kinds = [tint if first else "c0" for first, tint in zip(firsts, tints)]
        cells.named(k, 4, name, "").row(k, zip(kinds, row))
    alt = tr(
        f"Columns 0 to {columns - 1} of a row of Bs in groups of four. In order: {rows[0][1]}. Swizzled: {rows[1][1]}.",
        f"Bs 一行的第 0 到 {columns - 1} 列，四列一组。原来的次序：{rows[0][1]}；重排之后：{rows[1][1]}。",
    )
    caption = tr(
        "The first column of each group of four. Colored: what eight lanes read at the same time, the first half of their "
        "columns. In order they use every second group of banks twice; swizzled, each once.",
        "四列为一组，方块里标的是首列。彩色：八个 lane 同时读的部分，即每个 lane 八列的前一半。按原来的次序，每两组存储体只用到一组，用两次；重排之后每组恰好用一次。",
    )
    return figure(s, alt=alt, caption=caption)
