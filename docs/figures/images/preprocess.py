"""Drawings of images/preprocess: where a photograph goes in the network's input, how the bytes of two neighbors are paired, and which pixels a scale of three needs."""

from cudatut.site.drawing import Grid, Svg, bracket, figure, legend, tr


def letter(height: int = 180, width: int = 280, side: int = 256) -> str:
    """A photograph beside the square that it is put into, true to scale."""
    scale = min(side / height, side / width)
    high, wide = round(height * scale), round(width * scale)
    top, left = (side - high) // 2, (side - wide) // 2
    unit = 0.8  # units of the drawing for a pixel
    x, y, gap = 8, 34, 110
    s = Svg(x + unit * (width + side) + gap + 150, y + unit * side + 34)
    from_y = y + unit * (side - height) / 2
    s.rect(x, from_y, unit * width, unit * height, "c1", f"{width} x {height}")
    s.text(
        x + unit * width / 2,
        from_y - 12,
        tr("photograph, blue first", "照片，蓝色在前"),
        "muted",
    )
    to_x = x + unit * width + gap
    middle = y + unit * side / 2
    s.arrow(x + unit * width + 12, middle, to_x - 12, middle)
    s.text((x + unit * width + to_x) / 2, middle - 12, f"× {scale:.3f}", "muted", size=13)
    s.rect(to_x, y, unit * side, unit * side, "hollow dash")
    s.rect(to_x + unit * left, y + unit * top, unit * wide, unit * high, "c2", f"{wide} x {high}")
    s.text(
        to_x + unit * side / 2,
        y - 12,
        tr(f"input, {side} x {side}, red first", f"输入，{side} x {side}，红色在前"),
        "muted",
    )
    s.text(to_x + unit * side / 2, y + unit * top / 2 + 5, tr("border", "边框"), "muted")
    if top:
        at = to_x + unit * side + 14
        s.text_from(at, y + unit * top + 5, f"top = {top}", "muted")
        s.text_from(at, y + unit * (top + high) + 5, f"{top} + {high} = {top + high}", "muted")
    alt = tr(
        f"A photograph {width} pixels wide and {height} high, and to its right a square of {side} pixels. The photograph fills {wide} by {high} pixels of it, from row {top} and column {left} on; the rest is border.",
        f"左边是宽 {width}、高 {height} 像素的照片，右边是边长 {side} 像素的正方形。照片占其中 {wide} x {high} 像素，从第 {top} 行、第 {left} 列开始，其余是边框。",
    )
    caption = tr(
        f"The larger side gets {side} pixels, the other one as many as the proportions want. What is left over is border, half on either side.",
        f"较长的边变成 {side} 像素，另一边按比例变化。剩下的是边框，两边各一半。",
    )
    return figure(s, alt=alt, caption=caption)


def pairs(offset: int = 3) -> str:
    """Two neighbors' six bytes in three words, shifted to the front, and paired by channel."""
    cell, row, left = 46, 66, 128
    s = Svg(left + 12 * cell + 12, 3 * row + 62)
    grid = Grid(s, left, 34, cell, row, gap=(4, 32))
    colors = ("c1", "c2", "c3")  # blue, green, red
    names = [f"{c}{k}" for k in (0, 1) for c in "bgr"]

    def byte(k: int) -> tuple[str, str]:
        at = k - offset
        return (colors[at % 3], names[at]) if 0 <= at < 6 else ("hollow", "")

    grid.row(0, [byte(k) for k in range(12)])
    for w in range(3):
        x = grid.corner(0, 4 * w)[0]
        bracket(s, x, x + 4 * cell - 4, 30, f"word[{w}]", deep=-6)
    grid.row(1, [byte(offset + k) for k in range(8)])
    grid.row(2, [byte(offset + k) for k in (0, 3, 1, 4)])
    grid.row(2, [byte(offset + k) for k in (2, 5)], first=5)
    grid.name(0, tr("read", "读取"), away=14)
    grid.name(1, tr("shifted", "移位"), away=14)
    grid.name(2, tr("paired", "配对"), away=14)
    for r in (0, 1):
        x = grid.corner(r, 2)[0] - 2
        s.arrow(x, grid.corner(r, 0)[1] + row - 28, x, grid.corner(r + 1, 0)[1] - 5)
    bottom = grid.corner(2, 0)[1] + row - 24
    s.text_from(
        left,
        bottom + 10,
        tr(
            "each pair · (1 − weight, weight) = one channel",
            "每一对 ·（1 − 权重，权重）= 一个通道",
        ),
        "muted",
    )
    alt = tr(
        f"Twelve bytes of three words; two pixels, b0 g0 r0 b1 g1 r1, begin at byte {offset}. Below, the six bytes stand at the front of two words. Below that, they are paired: b0 b1, g0 g1 in one word, r0 r1 in another.",
        f"三个字共十二个字节；两个像素 b0 g0 r0 b1 g1 r1 从第 {offset} 个字节开始。下面一行，这六个字节移到两个字的开头。再下面一行按通道配对：b0 b1、g0 g1 在一个字里，r0 r1 在另一个字里。",
    )
    caption = tr(
        "The six bytes of two neighbors begin at any byte. Two shifts bring them to the front, two permutations pair them, and an instruction makes a channel of each pair.",
        "两个相邻像素的六个字节可以从任意字节开始。两次移位把它们移到开头，两次重排把它们配成对，每一对再由一条指令算出一个通道。",
    )
    return figure(s, alt=alt, caption=caption)


def three(pixels: int = 9) -> str:
    """A scale of three: which pixels have a weight, and which are fetched with them."""
    cell, left = 34, 8
    s = Svg(left + 12 * cell + 330, pixels * cell + 20)
    grid = Grid(s, left, 8, cell, gap=3)

    def kind(r: int, c: int) -> str:
        if r % 3 == 1:
            return "c1 solid" if c % 3 == 1 else "c1"
        return "hollow"

    grid.fill(pixels, 12, kind)
    x, y = left + 12 * cell + 24, 40
    for k, (cls, words) in enumerate(
        (
            ("c1 solid", tr("has a weight: counts", "有权重：计入")),
            ("c1", tr("fetched with it: does not count", "一起读入：不计")),
            ("hollow", tr("not read", "不读取")),
        )
    ):
        legend(s, x, y + 30 * k, [(cls, words)])
    needed, fetched = (pixels // 3) * 4, (pixels // 3) * 12
    alt = tr(
        f"{pixels} rows of 12 pixels. In every third row every third pixel has a weight. The other pixels of these rows are fetched with them, the other rows are not read.",
        f"{pixels} 行，每行 12 个像素。每三行中有一行，其中每三个像素有一个有权重；这些行的其他像素会一起读入，其余的行不读取。",
    )
    caption = tr(
        f"From {pixels} x 12 pixels to {pixels // 3} x 4: each center lies on a pixel's center, so {needed} pixels have a weight. Memory brings sectors, so {fetched} come.",
        f"从 {pixels} x 12 个像素缩小到 {pixels // 3} x 4 个：每个中心都落在一个像素的中心上，所以只有 {needed} 个像素有权重。显存按扇区读取，因此读入了 {fetched} 个。",
    )
    return figure(s, alt=alt, caption=caption)
