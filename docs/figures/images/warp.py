"""Drawings of the chapter on warps: from where a pixel comes, what a picture that is sent leaves out, weights, and what a warp looks at."""

import math

from cudatut.site.drawing import Grid, Svg, figure, legend, tr


def turned(x: float, y: float, degrees: float, n: int) -> tuple[float, float]:
    """Where the middle of a pixel goes, counterclockwise as one sees it, about the middle of n x n pixels."""
    t, middle = math.radians(degrees), (n - 1) / 2
    u, v = x - middle, y - middle
    return middle + u * math.cos(t) + v * math.sin(t), middle - u * math.sin(t) + v * math.cos(t)


def inverse(n: int = 8, degrees: float = 30, x: int = 6, y: int = 2) -> str:
    """A pixel of the output, and where among the pixels of the image its middle comes from."""
    cell, top, between = 34, 40, 90
    right = 20 + n * cell + between
    s = Svg(right + n * cell + 20, top + n * cell + 16)
    image, output = (Grid(s, left, top, cell, gap=2) for left in (20, right))
    column, row = turned(x, y, -degrees, n)
    near = {(math.floor(row) + j, math.floor(column) + i) for j in (0, 1) for i in (0, 1)}
    image.fill(n, n, lambda r, c: "c3" if (r, c) in near else "hollow")
    output.fill(n, n, lambda r, c: "c1" if (r, c) == (y, x) else "hollow")
    for grid, name in ((image, tr("image", "原图")), (output, tr("output", "输出"))):
        s.text(grid.x + n * cell / 2, top - 14, name, "muted")
    to = image.x + (column + 0.5) * cell - 1, image.y + (row + 0.5) * cell - 1
    s.arrow(*output.center(y, x), *to, "accent")
    s.circle(*to, 3, "c2 solid")
    return figure(
        s,
        alt=tr(
            f"Two grids of {n} x {n} pixels. An arrow leads from the pixel in row {y}, column {x} of the output to a point between four pixels of the image.",
            f"两个 {n} x {n} 像素的网格。一支箭头从输出的第 {y} 行、第 {x} 列的像素指向原图中四个像素之间的一点。",
        ),
        caption=tr(
            f"Turned by {degrees:g} degrees: the middle of output pixel ({x}, {y}) comes from column {column:.2f}, row {row:.2f}. Four pixels are around it.",
            f"旋转 {degrees:g} 度：输出像素 ({x}, {y}) 的中心来自第 {column:.2f} 列、第 {row:.2f} 行，周围有四个像素。",
        ),
    )


def holes(n: int = 12, degrees: float = 30) -> str:
    """How many pixels of a larger image are sent to each pixel of the output."""
    cell, top, left = 34, 16, 20
    s = Svg(left + n * cell + 20, top + n * cell + 44)
    grid = Grid(s, left, top, cell, gap=2)
    around = range(-n, 2 * n)
    points = [turned(x, y, degrees, n) for y in around for x in around]
    counts: dict[tuple[int, int], int] = {}
    for px, py in points:
        at = (round(py), round(px))
        counts[at] = counts.get(at, 0) + 1
    kinds = ("warn", "c1", "c3")
    grid.fill(n, n, lambda r, c: kinds[min(counts.get((r, c), 0), 2)])
    for px, py in points:
        if -0.5 <= px < n - 0.5 and -0.5 <= py < n - 0.5:
            s.circle(left + (px + 0.5) * cell - 1, top + (py + 0.5) * cell - 1, 2.5, "c2 solid")
    inside = [counts.get((r, c), 0) for r in range(n) for c in range(n)]
    none, more = inside.count(0), sum(one > 1 for one in inside)
    entries = [
        ("warn", tr("none arrives", "没有像素到达")),
        ("c1", tr("one", "一个")),
        ("c3", tr("two", "两个")),
    ]
    legend(s, left, top + n * cell + 16, entries)
    return figure(
        s,
        alt=tr(
            f"{n} x {n} pixels of an output, with dots where the middles of turned pixels arrive: {none} pixels have no dot, {more} have two.",
            f"输出的 {n} x {n} 个像素，圆点是旋转后各像素中心到达的位置：{none} 个像素里没有点，{more} 个有两个点。",
        ),
        caption=tr(
            f"Dots are middles of pixels, turned by {degrees:g} degrees. {none} of {n * n} output pixels get none, {more} get two.",
            f"圆点是旋转 {degrees:g} 度后的像素中心。{n * n} 个输出像素中，{none} 个一个也没有得到，{more} 个得到两个。",
        ),
    )


def weights(across: float = 0.3, down: float = 0.6) -> str:
    """Four neighbors, and the areas that are their weights."""
    side, left, top = 200, 140, 30
    s = Svg(left + side + 140, top + side + 36)
    x, y = left + across * side, top + down * side
    corners = [
        (0, 0, (1 - across) * (1 - down), "c1"),
        (1, 0, across * (1 - down), "c2"),
        (0, 1, (1 - across) * down, "c3"),
        (1, 1, across * down, "c4"),
    ]
    # The area opposite to a pixel is its weight.
    for i, j, _, cls in corners:
        x1, x2 = (x, left + side) if i == 0 else (left, x)
        y1, y2 = (y, top + side) if j == 0 else (top, y)
        s.rect(x1, y1, x2 - x1, y2 - y1, cls, rx=0)
    for i, j, weight, cls in corners:
        at = left + i * side, top + j * side
        s.circle(*at, 9, f"{cls} solid")
        write = s.text_from if i else s.text_to
        write(at[0] + (16 if i else -16), at[1] + 5, f"{weight:.2f}")
    s.circle(x, y, 6, "accent")
    s.text(left + across * side / 2, top + side + 28, f"{across:g}", "muted")
    s.text(left + (1 + across) * side / 2, top + side + 28, f"{1 - across:g}", "muted")
    return figure(
        s,
        alt=tr(
            f"A square with a pixel at each corner and a point inside, which divides it into four rectangles. The weights of the corners are {', '.join(f'{w:.2f}' for *_, w, _c in corners)}.",
            f"一个正方形，四个角各是一个像素，里面一点把它分成四个矩形。四角的权重是 {'、'.join(f'{w:.2f}' for *_, w, _c in corners)}。",
        ),
        caption=tr(
            f"A position {across:g} of the way to the right and {down:g} of the way down. The weight of a pixel is the area of its color, opposite to it.",
            f"一个位置：向右 {across:g}、向下 {down:g}。一个像素的权重，就是对角处与它同色的面积。",
        ),
    )


def looks(degrees: float = 90, shapes: tuple[tuple[int, int], ...] = ((32, 1), (8, 4))) -> str:
    """The pixels of the image around which the lanes of a warp look, for warps of two shapes."""
    n, cell, top = 34, 8, 46
    s = Svg(2 * (n * cell + 40), top + n * cell + 14)
    counted = []
    for k, (wide, high) in enumerate(shapes):
        left = 20 + k * (n * cell + 40)
        grid = Grid(s, left, top, cell, gap=1, rx=0)
        x0, y0 = (n - wide) // 2, (n - high) // 2
        seen = set()
        for y in range(y0, y0 + high):
            for x in range(x0, x0 + wide):
                column, row = turned(x, y, -degrees, n)
                seen.add((math.floor(row + 0.5), math.floor(column + 0.5)))
        rows = {row for row, _ in seen}
        counted.append(len(rows))
        s.rect(left, top, n * cell, n * cell, "hollow", rx=0)
        for row, column in sorted(seen):
            grid.box(row, column, "c1 solid")
        s.text(
            left + n * cell / 2,
            top - 14,
            tr(
                f"{wide} x {high} lanes: {len(rows)} rows",
                f"{wide} x {high} 个 lane：{len(rows)} 行",
            ),
            "muted",
        )
    (a, b), (c, d) = shapes
    return figure(
        s,
        alt=tr(
            f"Two squares of an image. In the first, the pixels of {a} x {b} lanes stand below each other in {counted[0]} rows; in the second those of {c} x {d} lanes fill a small rectangle of {counted[1]} rows.",
            f"原图中的两个正方形。第一个里，{a} x {b} 个 lane 的像素上下排成 {counted[0]} 行；第二个里，{c} x {d} 个 lane 的像素占据 {counted[1]} 行的一个小矩形。",
        ),
        caption=tr(
            f"Turned by {degrees:g} degrees: where in the image the lanes of one warp look. Each row is another cache line.",
            f"旋转 {degrees:g} 度时，一个线程束的各个 lane 在原图中读取的位置。每一行都是另一条缓存行。",
        ),
    )
