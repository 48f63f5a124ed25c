"""Drawings of coalesced access: the sectors of a request, two mappings of a matrix product."""

from cudatut.site.drawing import Grid, Svg, figure, tr

_WARP, _SECTOR = 32, 8  # lanes; words per sector


def _request(stride: int, offset: int, turn: int, flip: int) -> list[int]:
    """The word that each lane of the first warp wants, as `read_pattern` computes it."""
    return [offset + stride * (lane * turn % _WARP ^ flip) for lane in range(_WARP)]


def requests(words: int = 64) -> str:
    """Five requests of a warp on a strip of memory: which words are wanted, and which sectors travel."""
    rows = (
        (tr("aligned", "对齐"), (1, 0, 1, 0)),
        (tr("shuffled", "打乱次序"), (1, 0, 13, 6)),
        (tr("one word on", "偏移一个元素"), (1, 1, 1, 0)),
        (tr("stride 2", "步长 2"), (2, 0, 1, 0)),
        (tr("the same word", "同一个元素"), (0, 0, 1, 0)),
    )
    cell, left, row = 8, 112, 46
    s = Svg(left + cell * words + 84, row * len(rows) + 34)
    frames = Grid(s, left + 1, 8, cell * _SECTOR, row, gap=(2, 18))
    boxes = Grid(s, left + 1.5, 15, cell, row, gap=(3, 32), rx=0)
    counts = []
    for i, (name, pattern) in enumerate(rows):
        wanted = _request(*pattern)
        touched = {word // _SECTOR for word in wanted}
        counts.append(len(touched))
        sectors = range(words // _SECTOR)
        frames.name(i, name, "")
        frames.row(i, ["c1" if sector in touched else "hollow muted" for sector in sectors])
        boxes.row(i, ["c2 solid" if word in wanted else None for word in range(words)])
        many = "s" * (len(touched) > 1)
        count = tr(f"{len(touched)} sector{many}", f"{len(touched)} 个扇区")
        frames.note(i, len(sectors), count, "bold")
    y = 8 + row * len(rows) + 8
    s.line(left, y, left + cell * _SECTOR, y, "axis")
    s.text_from(left + cell * _SECTOR + 8, y + 5, tr("32 bytes", "32 字节"), "muted")
    listed = "; ".join(f"{name}: {count}" for (name, _), count in zip(rows, counts))
    alt = tr(
        f"Strips of {words} words in sectors of {_SECTOR}. Sectors that one request of {_WARP} lanes touches: {listed}.",
        f"每条画出 {words} 个元素，每 {_SECTOR} 个元素一个扇区。{_WARP} 个 lane 的一次请求访问的扇区数：{listed}。",
    )
    caption = tr(
        "One request of a warp. Small boxes: the words that its lanes want. Filled frames: the sectors that travel. The "
        "order of the lanes is not drawn, because it makes no difference.",
        "线程束的一次请求。小方块表示各 lane 读的元素，填色的框表示真正传输的扇区。lane 的先后次序没有影响，所以没有画出来。",
    )
    return figure(s, alt=alt, caption=caption)


def mappings(drawn: int = 8, step: int = 2) -> str:
    """What a warp touches in A, B and C at one step of the loop, for both mappings; `drawn` lanes and columns."""
    cell, gap, top = 17, 40, 34
    side = drawn * cell
    left = 8
    s = Svg(left + 3 * side + 2 * gap + 200, 2 * (side + 66))
    told = []
    for panel, (name, down) in enumerate((("naive_rows", True), ("naive_columns", False))):
        y = top + panel * (side + 66)
        a = {(lane if down else 0, step) for lane in range(drawn)}
        b = {(step, 0 if down else lane) for lane in range(drawn)}
        c = {(lane if down else 0, 0 if down else lane) for lane in range(drawn)}
        s.text_from(left, y - 16, name, "bold mono")
        for i, (matrix, touched) in enumerate((("A", a), ("B", b), ("C", c))):
            cells = Grid(s, left + i * (side + gap), y, cell, gap=2, rx=1)
            for r in range(drawn):
                cells.row(r, ["c2 solid" if (r, q) in touched else "c0" for q in range(drawn)])
            s.text(cells.x + side / 2, y + side + 18, matrix, "muted")
        a32 = _WARP if down else 1
        b32 = 1 if down else _WARP // _SECTOR
        c32 = _WARP if down else _WARP // _SECTOR
        told.append((name, a32, b32, c32))
        x = left + 3 * side + 2 * gap + 20
        s.text_from(x, y + 20, tr("sectors, 32 lanes:", "扇区数（32 个 lane）："), "muted")
        for i, (matrix, count) in enumerate((("A", a32), ("B", b32), ("C", c32))):
            s.text_from(x, y + 46 + 24 * i, f"{matrix}: {count}", "bold")
    listed = "; ".join(f"{name}: A {a}, B {b}, C {c}" for name, a, b, c in told)
    alt = tr(
        f"Elements of A, B and C that a warp touches at one step. Sectors for {_WARP} lanes: {listed}.",
        f"线程束在循环的一步里访问的 A、B、C 元素。{_WARP} 个 lane 的扇区数：{listed}。",
    )
    caption = tr(
        f"One step of the loop, {drawn} lanes drawn. Rows lie one after the other in memory: what is side by side in a row "
        "shares sectors, what is one below the other does not.",
        f"循环的一步，只画 {drawn} 个 lane。矩阵在内存里按行存放：同一行里相邻的元素共用扇区，上下相邻的元素则不共用。",
    )
    return figure(s, alt=alt, caption=caption)
