"""Drawings of the chapter on implicit GEMM: where a word of the second factor lies, a window's mask, the windows of a copy by the TMA."""

from cudatut.site.drawing import Grid, Svg, figure, legend, tr


def index_map(
    size: int = 5, window: int = 3, channels: int = 2, pad: int = 1, k: int = 14, pixel: int = 7
) -> str:
    """The second factor as a matrix of no memory, one of its words, and the word of the image that it is."""
    depth, pixels = channels * window * window, size * size
    channel, tap = divmod(k, window * window)
    r, q = divmod(tap, window)
    p, t = divmod(pixel, size)
    y, x = p - pad + r, t - pad + q
    s = Svg(760, 322)
    matrix = Grid(s, 64, 44, 11, 11, gap=1, rx=1)
    matrix.fill(
        depth,
        pixels,
        lambda i, j: "c2 solid" if (i, j) == (k, pixel) else "c1" if i == k or j == pixel else "c0",
    )
    s.text_from(
        64,
        26,
        tr(
            f"the factor B: {depth} x {pixels}, never stored", f"因子 B：{depth} x {pixels}，不存储"
        ),
    )
    s.text_to(56, matrix.center(k, 0)[1] + 5, f"k = {k}", "muted")
    s.text(matrix.center(0, pixel)[0], matrix.corner(depth, 0)[1] + 16, tr(f"pixel {pixel}", f"像素 {pixel}"), "muted")  # fmt: skip
    cell, left, top = 26, 430, 68
    for c in range(channels):
        shift = (channels - 1 - c) * 14
        image = Grid(s, left + shift, top - shift + 14, cell, cell, gap=2, rx=2)

        def kind(i, j, c=c):
            inside = p - pad <= i < p - pad + window and t - pad <= j < t - pad + window
            if c == channel and (i, j) == (y, x):
                return "c2 solid"
            return "c1" if inside and c == channel else "hollow"

        if c == channel:
            front = image
        else:
            image.fill(size, size, lambda i, j: "hollow")
    front.fill(size, size, kind)
    s.text_from(
        left,
        26,
        tr(
            f"image, channel {channel} of {channels}", f"图像，{channels} 个通道中的第 {channel} 个"
        ),
    )
    a, b = matrix.center(k, pixel), front.center(y, x)
    s.arrow(a[0] + 6, a[1], b[0] - 14, b[1], "accent")
    lines = tr(
        f"channel = k / {window * window} = {channel}\nrow = k % {window * window} / {window} = {r}, column = k % {window} = {q}\ny = {p} - {pad} + {r} = {y},  x = {t} - {pad} + {q} = {x}",
        f"通道 = k / {window * window} = {channel}\n行 = k % {window * window} / {window} = {r}，列 = k % {window} = {q}\ny = {p} - {pad} + {r} = {y}，x = {t} - {pad} + {q} = {x}",
    )
    s.text(left, 262, lines, "", "start")
    alt = tr(
        f"A matrix of {depth} rows and {pixels} columns; the word in row {k} and column {pixel} is marked. An arrow leads from it to row {y}, column {x} of channel {channel} of an image of {size} x {size}, within the window of result {pixel}.",
        f"一个 {depth} 行 {pixels} 列的矩阵，标出第 {k} 行第 {pixel} 列的字。箭头从它指向 {size} x {size} 的图像中通道 {channel} 的第 {y} 行第 {x} 列，它在结果 {pixel} 的窗口之内。",
    )
    caption = tr(
        f"Row k of B is a channel and a place in the window, column {pixel} is the result at ({p}, {t}). Together they say which word of the image it is.",
        f"B 的第 k 行对应一个通道和窗口里的一个位置，第 {pixel} 列对应 ({p}, {t}) 处的结果。两者合起来就能确定是图像的哪个字。",
    )
    return figure(s, alt=alt, caption=caption)


def mask(
    size: int = 5, window: int = 3, pad: int = 1, places: tuple = ((0, 0), (2, 2), (4, 2))
) -> str:
    """Windows at a corner, inside and at an edge: which of their weights meet the image, as bits."""
    cell, high = 20, size + 2 * pad
    s = Svg(20 + len(places) * 220, 236)
    found = []
    for i, (p, t) in enumerate(places):
        grid = Grid(s, 24 + i * 220, 18, cell, cell, gap=2, rx=2)
        bits = []

        def kind(y, x, p=p, t=t, bits=bits):
            inside = pad <= y < pad + size and pad <= x < pad + size
            if p <= y < p + window and t <= x < t + window:
                bits.append(int(inside))
                return ("c2" if inside else "c4", bits[-1])
            return "c1" if inside else "hollow"

        grid.fill(high, high, kind)
        found.append("".join(map(str, bits)))
        s.text(24 + i * 220 + high * cell / 2, 30 + high * cell + 6, found[-1], "mono")
    legend(
        s,
        24,
        206,
        [
            ("c1", tr("image", "图像")),
            ("hollow", tr("padding", "填充")),
            ("c2", tr("weight meets the image", "权重落在图像内")),
            ("c4", tr("it does not", "落在图像外")),
        ],
    )
    alt = tr(
        f"An image of {size} x {size} with a border of {pad}, {len(places)} times, each with a window of {window} x {window}. The bits of its weights, row by row, are {', '.join(found)}.",
        f"{size} x {size} 的图像，四周各填充 {pad}，画了 {len(places)} 次，每次有一个 {window} x {window} 的窗口。各权重的位逐行排列为 {'、'.join(found)}。",
    )
    caption = tr(
        f"The mask of a thread has a bit for each of the {window * window} weights. It is made once, when the thread learns which result it copies for.",
        f"线程的掩码为 {window * window} 个权重各留一位。线程确定自己为哪个结果复制时，掩码算一次就够了。",
    )
    return figure(s, alt=alt, caption=caption)


def windows(
    size: int = 6,
    window: int = 3,
    pad: int = 1,
    pixels: int = 16,
    first: int = 8,
    tap: tuple = (0, 2),
) -> str:
    """A copy in im2col mode: where its windows begin, and the pixels that arrive for one place in the window."""
    cell, high = 26, size + 2 * pad
    begin = range(first, first + pixels)
    s = Svg(700, 286)
    starts = {divmod(i, size): i - first for i in begin}
    fetched = {(y + tap[0], x + tap[1]): n for (y, x), n in starts.items()}

    def drawn(grid, marked, cls):
        def kind(y, x):
            inside = pad <= y < pad + size and pad <= x < pad + size
            if (y, x) in marked:
                return cls if inside or cls == "c3" else "c4", marked[y, x]
            return "c1" if inside else "hollow"

        grid.fill(high, high, kind)

    left, right = (
        Grid(s, 30, 36, cell, cell, gap=2, size=12),
        Grid(s, 390, 36, cell, cell, gap=2, size=12),
    )
    drawn(left, starts, "c3")
    drawn(right, fetched, "c2")
    s.text_from(30, 22, tr(f"{pixels} windows, where they begin", f"{pixels} 个窗口的起点"))
    s.text_from(390, 22, tr(f"the copy for place {tap}", f"为窗口内位置 {tap} 所做的复制"))
    x0, y0 = left.corner(0, 0)
    x1, y1 = left.corner(size, size)
    s.polyline([(x0 - 3, y0 - 3), (x1, y0 - 3), (x1, y1), (x0 - 3, y1), (x0 - 3, y0 - 3)], "accent")
    legend(
        s,
        30,
        258,
        [
            ("c1", tr("image", "图像")),
            ("hollow", tr("padding", "填充")),
            ("c3", tr("a window begins", "窗口起点")),
            ("c2", tr("copied", "复制")),
            ("c4", tr("zeros", "补零")),
        ],
    )
    zeros = sum(not (pad <= y < pad + size and pad <= x < pad + size) for y, x in fetched)
    alt = tr(
        f"Left: an image of {size} x {size} with a border of {pad}. A frame holds the places where windows begin; {pixels} of them in a row are numbered, and the row ends at the frame and goes on in the next line. Right: the same places moved by {tap}; {zeros} of them lie in the border.",
        f"左：{size} x {size} 的图像，四周各填充 {pad}。方框内是窗口可能的起点，其中连续 {pixels} 个编了号，到方框边缘就转到下一行。右：同样的位置移动 {tap}，其中 {zeros} 个落在填充里。",
    )
    caption = tr(
        f"The map knows the frame: the lower corner is -{pad}, the upper one {pad} - {window - 1}. A copy begins at one window and takes the next {pixels - 1} as they come. The kernel says the place in the window, here {tap}; {zeros} of the {pixels} pixels lie outside and arrive as zeros.",
        f"张量映射知道这个方框：下角为 -{pad}，上角为 {pad} - {window - 1}。一次复制从某个窗口开始，依次取后面的 {pixels - 1} 个。kernel 给出窗口内的位置，这里是 {tap}；{pixels} 个像素里有 {zeros} 个在图像外，到达时是零。",
    )
    return figure(s, alt=alt, caption=caption)
