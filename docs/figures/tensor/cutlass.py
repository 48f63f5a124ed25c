"""Drawings of layouts: three orders of a matrix, and a matrix divided into tiles."""

from cudatut.site.drawing import Grid, Svg, figure, tr

Mode = (
    int | tuple[int, int]
)  # of a shape or of its strides: a number, or a pair of which the first changes fastest
_LAYOUTS: tuple[tuple[tuple[Mode, Mode], tuple[Mode, Mode]], ...]
_LAYOUTS = (((4, 6), (6, 1)), ((4, 6), (1, 4)), (((2, 2), (3, 2)), ((3, 12), (1, 6))))


def _offset(extents: Mode, steps: Mode, place: int) -> int:
    """Of one mode: where the element of this place lies."""
    (extent, _), (step, next_step) = (_pair(extents), _pair(steps))
    return place % extent * step + place // extent * next_step


def _pair(mode: Mode) -> tuple[int, int]:
    return (mode, 0) if isinstance(mode, int) else mode


def _text(shape: tuple, stride: tuple) -> str:
    return f"{shape}:{stride}".replace(" ", "")


def orders() -> str:
    """The same 4 x 6 elements by three layouts: the number is where an element lies."""
    cell, top, gap = 32, 56, 34
    wide = 6 * cell
    s = Svg(3 * wide + 2 * gap + 20, top + 4 * cell + 14)
    titles = (
        tr("row by row", "逐行"),
        tr("column by column", "逐列"),
        tr("boxes of 2 x 3", "2 × 3 的盒子"),
    )
    for k, (shape, stride) in enumerate(_LAYOUTS):
        x0 = 10 + k * (wide + gap)
        s.text_from(x0, 18, titles[k], "bold")
        s.text_from(x0, 40, _text(shape, stride), "muted", 11)
        cells = Grid(s, x0, top, cell, gap=2)
        for r in range(4):
            for c in range(6):
                at = _offset(shape[0], stride[0], r) + _offset(shape[1], stride[1], c)
                cells.box(r, c, f"c{1 + at // 6}", at)
    alt = tr(
        "Three grids of 4 rows and 6 columns with the offset of each element: counted along rows, along columns, and box by box of 2 rows and 3 columns.",
        "三个 4 行 6 列的方格，写着每个元素的偏移：第一个沿行计数，第二个沿列计数，第三个按 2 行 3 列的盒子逐个计数。",
    )
    caption = tr(
        "One matrix, three layouts. The number is the offset of the element; the color changes every six offsets.",
        "同一个矩阵的三种布局。数字是元素的偏移，每六个偏移换一种颜色。",
    )
    return figure(s, alt=alt, caption=caption)


def divide(rows: int = 8, columns: int = 8, tile: tuple[int, int] = (2, 3)) -> str:
    """A matrix of 1024 x 512 in tiles of 128 x 64: one coordinate finds the tile, the other the element in it."""
    cell, top, left = 22, 44, 14
    s = Svg(680, top + rows * cell + 16)
    s.text_from(
        left, 20, tr("1024 x 512 in tiles of 128 x 64", "1024 × 512，分块 128 × 64"), "bold"
    )
    cells = Grid(s, left, top, cell, gap=2, rx=1)
    cells.fill(rows, columns, lambda r, c: "c1" if (r, c) == tile else "hollow")
    x, y, wide, high = 360, top, 130, rows * cell - 2
    s.rect(x, y, wide, high, "c1", rx=3)
    s.arrow(left + (tile[1] + 1) * cell, top + tile[0] * cell + cell / 2, x - 8, y + 40, "accent")
    s.text_from(x, 20, tr(f"tile {tile}", f"分块 {tile}"), "bold")
    s.rect(x + 24, y + 22, 10, 10, "c4", rx=1)
    s.text_from(x + 42, y + 31, tr("element (5, 7)", "元素 (5, 7)"), "", 12)
    inside = tr("inside: (128,64):(512,1)", "块内：(128,64):(512,1)")
    s.text_from(x + wide + 12, y + 60, inside, "muted", 11)
    between = tr("tiles: (8,8):(65536,64)", "块间：(8,8):(65536,64)")
    s.text_from(left + columns * cell + 12, y + high - 6, between, "muted", 11)
    alt = tr(
        f"A matrix in 8 x 8 tiles; tile {tile} is drawn large, with element (5, 7) in it. Strides inside of a tile are 512 and 1, from tile to tile 65536 and 64.",
        f"一个矩阵分成 8 × 8 个分块；分块 {tile} 被放大，里面标出元素 (5, 7)。块内步长为 512 和 1，块间步长为 65536 和 64。",
    )
    caption = tr(
        "Two coordinates instead of one: which tile, and where in it.",
        "一个坐标分成两个：在哪个分块，以及在块内哪个位置。",
    )
    return figure(s, alt=alt, caption=caption)
