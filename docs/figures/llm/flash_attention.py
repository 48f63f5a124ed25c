"""Figures of the chapter on the FlashAttention kernel: the fragments of mma, swizzled rows, and how scores become a factor."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def _group(d: int) -> int:
    """As `Layout` in flash.cuh: chunks among which the XOR moves."""
    chunks = d // 8
    return 8 if chunks % 8 == 0 else 4 if chunks % 4 == 0 else 2


def fragments(lane: int = 5) -> str:
    """A, B and D of one mma, with the lane that holds each element; those of one lane stand out."""
    cell, left, y_b = 19, 110, 36
    g, t = divmod(lane, 4)
    x_d, y_a = left + 16 * cell + 40, y_b + 16 * cell + 40
    s = Svg(x_d + 8 * cell + 110, y_a + 16 * cell + 12)

    def matrix(x: float, y: float, columns: int, holder, register) -> None:
        """Columns of 16 elements; holder(r, c) is the lane of an element, register(r, c) where in it."""

        def kind(r: int, c: int) -> tuple[str, int]:
            tint = "c1" if register(r, c) % 2 else "c0"
            return "c3 solid" if holder(r, c) == lane else tint, holder(r, c)

        Grid(s, x, y, cell, gap=2, rx=0, size=10).fill(16, columns, kind)

    matrix(
        left,
        y_a,
        16,
        lambda r, c: r % 8 * 4 + c % 8 // 2,
        lambda r, c: r // 8 + c // 8 * 2,
    )
    matrix(x_d, y_b, 8, lambda r, c: c * 4 + r % 8 // 2, lambda r, c: r // 8)
    matrix(x_d, y_a, 8, lambda r, c: r % 8 * 4 + c // 2, lambda r, c: r // 8)
    s.text_from(left, y_a - 12, tr("A, 16 x 16", "A，16 x 16"), "bold")
    s.text_from(x_d, y_b - 12, tr("B, 16 x 8", "B，16 x 8"), "bold")
    s.text_from(x_d, y_a - 12, tr("D, 16 x 8", "D，16 x 8"), "bold")
    right = x_d + 8 * cell + 12
    for half in range(2):
        row = y_a + (g + 8 * half) * cell + 14
        s.text_from(right, y_b + (2 * t + 1 + 8 * half) * cell + 4, f"b{half}", "mono")
        s.text_from(right, row, f"d[{2 * half}], d[{2 * half + 1}]", "mono")
        s.text_to(left - 12, row, f"a[{half}], a[{half + 2}]", "mono")
    alt = tr(
        f"The elements of A, B and D with the number of the lane that holds them. Lane {lane} has of A the columns {2 * t} and {2 * t + 1}, "
        f"and 8 further on, of rows {g} and {g + 8}; of B rows {2 * t}, {2 * t + 1}, {2 * t + 8}, {2 * t + 9} of column {g}; of D columns {2 * t} and "
        f"{2 * t + 1} of rows {g} and {g + 8}.",
        f"A、B、D 的每个元素都标着由哪个 lane 持有。lane {lane} 持有：A 的第 {g}、{g + 8} 行的第 {2 * t}、{2 * t + 1} 列及其右边 8 列处的两个；"
        f"B 的第 {g} 列的第 {2 * t}、{2 * t + 1}、{2 * t + 8}、{2 * t + 9} 行；D 的第 {g}、{g + 8} 行的第 {2 * t}、{2 * t + 1} 列。",
    )
    caption = tr(
        f"One `mma`: every element with the lane that holds it, those of lane {lane} (g = {g}, t = {t}) highlighted. Two neighbors share a "
        "register in A and B.",
        f"一条 `mma`：每个元素都标着由哪个 lane 持有，突出的是 lane {lane}（g = {g}，t = {t}）的。在 A 和 B 里，相邻两个元素共用一个寄存器。",
    )
    return figure(s, alt=alt, caption=caption)


def swizzle(d: int = 64, rows: int = 8, chunk: int = 2) -> str:
    """Rows of a tile in shared memory, chunk by chunk: as they lie, and where `Layout` puts them."""
    chunks, group = d // 8, _group(d)
    cell, gap, top, left = 34, 70, 66, 60
    s = Svg(left + 2 * chunks * cell + gap + 20, top + rows * cell + 24)
    met = [[0] * 8, [0] * 8]
    for panel, title in enumerate((tr("as they lie", "原样"), tr("swizzled", "异或重排之后"))):
        cells = Grid(s, left + panel * (chunks * cell + gap), top, cell)
        middle = cells.x + chunks * cell / 2
        s.text(middle, 20, title, "bold")
        s.text(middle, 40, tr("first bank", "首个存储体"), "muted", size=12)
        cells.heads((c * 4 % 32 for c in range(chunks)), size=12)
        for r in range(rows):
            if panel == 0:
                cells.name(r, tr(f"row {r}", f"第 {r} 行"), "", 12)
            for c in range(chunks):
                moved = c ^ (r // (8 // group) % group if panel else 0)
                cells.box(r, moved, "c3 solid" if c == chunk else "c0", c)
                met[panel][(r * chunks + moved) % 8] += c == chunk
    alt = tr(
        f"{rows} rows of {chunks} chunks of 16 bytes. As they lie, chunk {chunk} of all rows stands in one column: up to {max(met[0])} of them in "
        f"the same four banks. Swizzled, it stands in another place in each row: {max(met[1])} in the same four banks.",
        f"{rows} 行，每行 {chunks} 个 16 字节的小段。原样存放时，各行的 {chunk} 号小段排成一列，最多 {max(met[0])} 个落在同样的四个存储体；"
        f"异或重排之后，每行放的位置不同，落在同样四个存储体的最多 {max(met[1])} 个。",
    )
    caption = tr(
        f"A tile with D = {d}. `ldmatrix` reads one chunk of eight rows, such as chunk {chunk}: {max(met[0])} passes as the rows lie, "
        f"{max(met[1])} if row r keeps chunk c at c XOR r.",
        f"D = {d} 的一个分块。`ldmatrix` 一次读八行的同一个小段，例如 {chunk} 号：原样存放要 {max(met[0])} 趟；第 r 行把 c 号小段放在 c XOR r 处，"
        f"只要 {max(met[1])} 趟。",
    )
    return figure(s, alt=alt, caption=caption)


def chained(lane: int = 5) -> str:
    """Scores of 16 queries and 16 keys as results d of two mma, and the same numbers as the factor A of the next."""
    cell, top, gap, left = 18, 74, 90, 20
    g, t = divmod(lane, 4)
    right = left + 16 * cell + gap
    s = Svg(right + 16 * cell + 30, top + 16 * cell + 30)
    s.text(left + 8 * cell, 22, tr("scores: results of two mma", "分数：两条 mma 的结果"), "bold")
    title = tr("weights: factor A of the next", "权重：下一条的操作数 A")
    s.text(right + 8 * cell, 22, title, "bold")
    for first in (0, 8):
        x, keys = (
            left + first * cell,
            tr(f"keys {first} to {first + 7}", f"键 {first} 到 {first + 7}"),
        )
        s.text(x + 4 * cell, 50, keys, "muted", size=12)
        s.line(x, top - 8, x + 8 * cell - 4, top - 8, "axis")
    scores = Grid(s, left, top, cell, gap=2, rx=0, size=11)
    weights = Grid(s, right, top, cell, gap=2, rx=0, size=11)
    for r in range(16):
        for c in range(16):
            mine = r % 8 == g and c % 8 // 2 == t
            register, word = r // 8 * 2 + c % 2, r // 8 + c // 8 * 2
            scores.box(r, c, "c3 solid" if mine else "c0", register if mine else None)
            weights.box(r, c, "c3 solid" if mine else "c0", word if mine else None)
    y = top + 8 * cell
    s.arrow(left + 16 * cell + 14, y, right - 14, y, "accent")
    same = tr("same lane", "同一个 lane")
    s.text(left + 16 * cell + gap / 2, y - 12, same, "accent", size=12)
    alt = tr(
        f"Two grids of 16 queries by 16 keys. Lane {lane} holds the same eight elements in both: on the left as registers d[0] to d[3] of two "
        "products, on the right as words a[0] to a[3] of two elements each.",
        f"两张 16 个查询 x 16 个键的图。lane {lane} 在两边持有同样的八个元素：左边是两次乘法的寄存器 d[0] 到 d[3]，右边是 a[0] 到 a[3]，每个字两个元素。",
    )
    caption = tr(
        f"Left: the scores that lane {lane} has, with the number of d, from two products of eight keys each. Right: the weights that it needs, "
        "with the number of a. They are the same places.",
        f"左：lane {lane} 持有的分数，数字是 d 的编号，来自两次乘法，每次八个键。右：这个 lane 需要的权重，数字是 a 的编号。两边的位置相同。",
    )
    return figure(s, alt=alt, caption=caption)
