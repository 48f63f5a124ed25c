"""Drawings of the chapter on im2col: the windows of an image as columns of a matrix, and the product that makes the results."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def matrix(side: int = 4, window: int = 3, chosen: int = 1) -> str:
    """An image whose words are numbered, and the matrix of its windows."""
    out = side - window + 1
    places = [(r, q) for r in range(out) for q in range(out)]
    rows = window * window
    cell, top = 34, 40
    gap = 120
    s = Svg(20 + side * cell + gap + 90 + len(places) * (cell + 12) + 10, top + rows * 28 + 14)
    y = top + (rows * 28 - side * cell) / 2
    image = Grid(s, 14, y, cell, size=14)
    own_r, own_q = places[chosen]

    def kind(r, q):
        inside = own_r <= r < own_r + window and own_q <= q < own_q + window
        return ("c1" if inside else "hollow", r * side + q)

    image.fill(side, side, kind)
    s.text(14 + side * cell / 2, y - 14, tr("image", "图像"), "muted")
    s.arrow(
        20 + side * cell + 14, y + side * cell / 2, 20 + side * cell + gap - 40, y + side * cell / 2
    )
    left = 20 + side * cell + gap + 60
    grid = Grid(s, left, top, cell + 12, 28, size=13)
    grid.heads([tr(f"({r}, {q})", f"({r}, {q})") for r, q in places])
    for k in range(rows):
        r, q = divmod(k, window)
        grid.name(k, f"({r}, {q})")
        for i, (p, o) in enumerate(places):
            grid.box(k, i, "c1" if i == chosen else "hollow", (p + r) * side + o + q)
    alt = tr(
        f"An image of {side} by {side} words, numbered from 0 to {side * side - 1}, with a window of {window} by {window} marked; and a matrix of {rows} rows and {len(places)} columns, in which one column has the words of that window.",
        f"{side} × {side} 个字的图像，编号 0 到 {side * side - 1}，标出了一个 {window} × {window} 的窗口；以及一个 {rows} 行 {len(places)} 列的矩阵，其中一列就是这个窗口的字。",
    )
    caption = tr(
        f"A row for each place in the window (on the left), a column for each place of a result (above). {side * side} words become {rows * len(places)}: word {(own_r + 1) * side + own_q + 1} stands there {sum((own_r + 1 - p) in range(window) and (own_q + 1 - o) in range(window) for p, o in places)} times.",
        f"每一行对应窗口里的一个位置（左侧），每一列对应一个结果的位置（上方）。{side * side} 个字变成 {rows * len(places)} 个：第 {(own_r + 1) * side + own_q + 1} 个字在其中出现 {sum((own_r + 1 - p) in range(window) and (own_q + 1 - o) in range(window) for p, o in places)} 次。",
    )
    return figure(s, alt=alt, caption=caption)


def product(images: int = 3) -> str:
    """The two factors and the product, by what their rows and columns are; and the turn that brings images first."""
    s = Svg(650, 250)
    s.rect(20, 100, 110, 60, "c2", tr("filters", "滤波器"))
    s.text(75, 90, tr("words of a window", "窗口的字"), "muted", size=12)
    s.text(150, 135, "×", "", size=20)
    for i in range(images):
        s.rect(176 + i * 62, 50, 58, 160, "c1", tr(f"image {i}", f"图像 {i}"), size=12)
    s.text(176 + images * 31, 40, tr("places of all images", "所有图像的位置"), "muted", size=12)
    right = 176 + images * 62
    s.text(right + 18, 135, "=", "", size=20)
    for i in range(images):
        s.rect(right + 40 + i * 62, 100, 58, 60, "c3", tr(f"image {i}", f"图像 {i}"), size=12)
    s.text(
        right + 40 + images * 31, 90, tr("places of all images", "所有图像的位置"), "muted", size=12
    )
    s.text(
        right + 34 + images * 31,
        182,
        tr("a row for each filter", "每个滤波器一行"),
        "muted",
        size=12,
    )
    alt = tr(
        f"A matrix of filters times a wide matrix, which has a part for each of {images} images, gives a matrix with a row for each filter and a part for each image.",
        f"滤波器的矩阵乘以一个很宽的矩阵（{images} 幅图像各占一段），得到的矩阵每个滤波器一行，每幅图像一段。",
    )
    caption = tr(
        "The product of all images at once. Its rows are filters, and within a row come the images; results have the images first, so they are turned afterwards.",
        "所有图像一次相乘。乘积的每一行是一个滤波器，行内依次是各幅图像；而结果要按图像在前存放，所以最后要转换次序。",
    )
    return figure(s, alt=alt, caption=caption)
