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
    front = Grid(s, left, top, cell, cell, gap=2, rx=2)
    for c in range(channels):
        shift = (channels - 1 - c) * 14
        image = Grid(s, left + shift, top - shift + 14, cell, cell, gap=2, rx=2)
        if c == channel:
            front = image
        else:
            image.fill(size, size, lambda i, j: "hollow")

    def kind(i, j):
        inside = p - pad <= i < p - pad + window and t - pad <= j < t - pad + window
        if (i, j) == (y, x):
            return "c2 solid"
        return "c1" if inside else "hollow"

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
        bits: list[int] = []

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


def shared_line(fours: int = 3, width: int = 8, first: int = 4) -> str:
    """A line of the shared tile: places of results, one more on each side, a zero; and what each of three taps reads."""
    cell, left, top = 40, 40, 40
    count = fours * 4
    s = Svg(left + (count + 3) * cell + 76, 190)
    grid = Grid(s, left, top, cell, 34, gap=3, rx=3)
    places = [first - 1 + i for i in range(count + 2)]
    mine = 1  # the four of the thread that is shown
    own = range(1 + 4 * mine, 5 + 4 * mine)
    grid.row(
        0,
        [
            ("c2" if i in own else "c1" if 0 < i <= count else "c0", place % width)
            for i, place in enumerate(places)
        ],
    )
    grid.box(0, count + 2.4, "c4", "0")
    at_left = places[own[0]] % width == 0
    at_right = places[own[-1]] % width == width - 1
    for tap in range(3):
        row = 1.5 + 0.9 * tap
        reads = [own[0] + tap - 1 + i for i in range(4)]
        for i in reads:
            edge = (i < own[0] and at_left) or (i > own[-1] and at_right)
            grid.box(row, count + 2.4 if edge else i, "c4" if edge else "c3", down=0.6)
        grid.note(row - 0.2, count + 3.4, tr(f"tap {tap}", f"抽头 {tap}"))
    s.text_from(left, 24, tr("a line of the tile: column of the image", "分块的一行：图像的列号"))
    s.text(grid.center(0, count + 2.4)[0], 24, tr("zero", "零"))
    edges = [one for one, so in ((0, at_left), (2, at_right)) if so]
    alt = tr(
        f"A line of {count + 2} words, the columns {places[0] % width} to {places[-1] % width} of an image of {width} columns, over the end of a row, and one word that is zero. Below, what a thread with four of them reads: for tap 1 its own four, for tap 0 one further to the left, for tap 2 one further to the right. For tap {' and '.join(map(str, edges))} one of these lies in another row, and the thread reads the zero.",
        f"一行 {count + 2} 个字，是 {width} 列的图像的第 {places[0] % width} 列到第 {places[-1] % width} 列，跨过一行的末尾，另有一个字为零。下面是负责其中四个的线程所读的：抽头 1 读自己的四个，抽头 0 偏左一个，抽头 2 偏右一个。抽头 {'、'.join(map(str, edges))} 有一个字属于另一行，线程改读那个零。",
    )
    caption = tr(
        f"The thread reads six words for twelve products. In an image of {width} columns its four begin a row: the word to the left is another row's, so tap 0 reads the zero.",
        f"线程读六个字，够十二次乘法用。图像有 {width} 列，它的四个字在一行的开头：左边的字属于另一行，所以抽头 0 改读零。",
    )
    return figure(s, alt=alt, caption=caption)
