"""Figures of the chapter on FP8: what scales of blocks belong to."""

from cudatut.site.drawing import Grid, Svg, figure, hue, tr


def scales(blocks: int = 3, rows: int = 6) -> str:
    """A with a scale for each row and 128 steps of depth, B with one for 128 x 128; k runs to the right in both."""
    wide, thin, square = 84, 20, 84
    left, top, gap = 64, 46, 96
    x_b = left + blocks * wide + gap
    s = Svg(x_b + blocks * square + 20, top + max(rows * thin, 2 * square) + 34)
    s.text(left + blocks * wide / 2, 18, tr("A, m × k: 1 × 128", "A，m × k：1 × 128"), "bold")
    s.text(x_b + blocks * square / 2, 18, tr("B, n × k: 128 × 128", "B，n × k：128 × 128"), "bold")
    of_a = Grid(s, left, top, wide, thin, rx=0, size=12)
    of_a.fill(rows, blocks, lambda row, block: hue(block + row))
    of_a.name(0, tr("row 0", "行 0"), away=8).name(1, tr("row 1", "行 1"), away=8)
    one = tr("one\nscale", "一个\n系数")
    of_b = Grid(s, x_b, top, square, rx=0, size=12)
    of_b.fill(2, blocks, lambda down, block: (hue(block + 3 * down), one))
    y = top + max(rows * thin, 2 * square) + 14
    for cells in (of_a, of_b):
        cells.heads(["128"] * blocks, size=11, up=8)
        end = cells.x + blocks * cells.wide
        s.arrow(cells.x, y, end - 3, y, "muted")
        s.text((cells.x + end) / 2, y + 16, tr("depth k", "深度 k"), "muted", size=12)
    alt = tr(
        f"A has a scale for each row and each 128 steps of depth, here {blocks} for a row; B has one for each square of 128 columns of C and 128 steps.",
        f"A 的每一行沿深度每 128 个元素有一个缩放系数，这里一行有 {blocks} 个；B 的每个方块（C 的 128 列、深度 128）有一个。",
    )
    caption = tr(
        "Scales of blocks: every tinted piece has one. Both matrices lie with the depth along their lines.",
        "分块缩放：每个着色的小块有一个缩放系数。两个矩阵的每一行都沿深度方向存放。",
    )
    return figure(s, alt=alt, caption=caption)
