"""Figures of the chapter on the principle of FlashAttention: both orders of its loops, and the tiles of a block."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def orders(query_tiles: int = 4, key_tiles: int = 5, shown: int = 7) -> str:
    """Tiles of the scores, numbered in the order in which they are computed, up to number `shown`; both orders."""
    cell, gap, top, left = 44, 120, 74, 70
    panel = key_tiles * cell
    s = Svg(left + 2 * panel + gap + 20, top + query_tiles * cell + 44)
    panels = (
        (
            tr("queries outside", "查询在外层"),
            lambda i, j: i * key_tiles + j,
            tr("stay on the SM: o, sum, base of Q1", "留在 SM 上：Q1 的 o、sum、base"),
        ),
        (
            tr("keys and values outside", "键和值在外层"),
            lambda i, j: j * query_tiles + i,
            tr("stay on the SM: K1 and V1", "留在 SM 上：K1 和 V1"),
        ),
    )
    for number, (title, order, kept) in enumerate(panels):
        cells = Grid(s, left + number * (panel + gap), top, cell)
        middle = cells.x + panel / 2
        s.text(middle, 22, title, "bold")
        s.text(middle, 46, tr("tiles of keys and values →", "键和值的分块 →"), "muted")
        cells.heads((f"K{j}" for j in range(key_tiles)), "mono", 12, up=8)
        for i in range(query_tiles):
            cells.name(i, f"Q{i}", "mono")
            for j in range(key_tiles):
                at = order(i, j) + 1
                cls = "c1" if at < shown else "c3 bold" if at == shown else "hollow dash muted"
                cells.box(i, j, cls, at)
        s.text(middle, top + query_tiles * cell + 24, kept, "accent")
    alt = tr(
        f"Two grids of {query_tiles} x {key_tiles} tiles of scores with the numbers of their turns. With the queries outside a "
        "row of tiles is computed from left to right, then the next row: results of the row stay on the SM. With keys and "
        "values outside a column is computed from top to bottom: keys and values stay, results of each row come and go.",
        f"两张 {query_tiles} x {key_tiles} 的分数分块图，数字是计算次序。查询在外层时，从左到右算完一行，再算下一行，"
        "这一行的结果一直留在 SM 上；键和值在外层时，从上到下算完一列，键和值留下，每一行的结果都要读进来再写出去。",
    )
    caption = tr(
        f"The tiles of the S x S scores in the order in which they are computed; tile {shown} is at work, dashed ones are still to "
        "come. No tile is ever stored in global memory.",
        f"S x S 分数的各个分块，按计算次序编号；第 {shown} 块正在计算，虚线的还没算。任何一块都不写进全局内存。",
    )
    return figure(s, alt=alt, caption=caption)


def block(queries: int = 64, keys: int = 32, d: int = 64) -> str:
    """What one thread of the kernel has of the scores of a tile and of the result of its queries."""
    unit, top, left = 2.6, 60, 40
    high, wide, deep = queries * unit, keys * unit, d * unit
    x_s, x_o = left + 30, left + 30 + wide + 190
    s = Svg(x_o + deep + 60, top + high + 40)
    ty, tx = 5, 3  # the thread that is shown
    row = top + 4 * ty * unit
    for x, wide_of, name, columns in (
        (x_s, wide, tr("scores", "分数"), keys),
        (x_o, deep, tr("result o", "结果 o"), d),
    ):
        s.text(x + wide_of / 2, 24, name, "bold")
        s.text(x + wide_of / 2, 46, f"{queries} x {columns}", "muted")
        s.rect(x, top, wide_of, high, "c0", rx=0).rect(x, row, wide_of, 4 * unit, "c1", rx=0)
    for j in range(keys // 16):
        s.rect(x_s + (tx + 16 * j) * unit, row, unit, 4 * unit, "c3 solid", rx=0)
    s.rect(x_o + 4 * tx * unit, row, 4 * unit, 4 * unit, "c3 solid", rx=0)
    middle, between = row + 2 * unit, (x_s + wide + x_o) / 2
    s.arrow(x_s + wide + 14, middle, x_o - 14, middle, "accent")
    s.text(between, middle - 12, tr("weights,", "权重，"), "accent")
    s.text(between, middle + 22, tr("through shared memory", "经共享内存"), "muted")
    s.text_to(x_s - 10, middle + 5, "4 ty", "mono", 12)
    alt = tr(
        f"Four rows of the {queries} x {keys} scores belong to the 16 threads with the same ty. One thread has the columns tx and "
        f"tx + 16 of them, and of the same four rows of the result four neighboring columns from 4 tx on.",
        f"{queries} x {keys} 个分数里，有四行属于 ty 相同的 16 个线程。其中一个线程负责第 tx 和 tx + 16 列；"
        "在结果的同样四行里，这个线程负责从 4 tx 开始的四列。",
    )
    caption = tr(
        f"What thread (ty, tx) = ({ty}, {tx}) computes: 4 x {keys // 16} scores, and 4 x 4 elements of the result. The 16 threads of a "
        "row are half a warp.",
        f"线程 (ty, tx) = ({ty}, {tx}) 的计算：4 x {keys // 16} 个分数，以及结果的 4 x 4 个元素。同一行的 16 个线程是半个线程束。",
    )
    return figure(s, alt=alt, caption=caption)
