"""Drawings of the chapter on direct convolution: a window on an image, a tile with its halo, and the results that a lane owns."""

from cudatut.site.drawing import Grid, Svg, bracket, figure, legend, tr

IMAGE = (
    (1, 0, 2, 1, 0),
    (0, 3, 1, 0, 2),
    (2, 1, 0, 1, 1),
    (0, 2, 1, 3, 0),
    (1, 0, 0, 2, 1),
)
WINDOW = ((-1, 0, 1), (-2, 0, 2), (-1, 0, 1))


def signed(number: int) -> str:
    return f"(−{-number})" if number < 0 else f"{number}"


def one_result(row: int = 1, column: int = 2, image=IMAGE, window=WINDOW) -> str:
    """The window laid on an image without being turned round, and the sum that it gives."""
    extent, n, m = len(window), len(image), len(image[0])
    products = [
        image[row + r][column + q] * window[r][q] for r in range(extent) for q in range(extent)
    ]
    out_high, out_wide = n - extent + 1, m - extent + 1
    cell, top = 38, 44
    s = Svg(610, top + n * cell + 12)
    grid = Grid(s, 10, top, cell, size=15)

    def kind(r, q):
        inside = row <= r < row + extent and column <= q < column + extent
        return ("c1" if inside else "hollow", image[r][q])

    grid.fill(n, m, kind)
    s.text(10 + m * cell / 2, 28, tr("image", "图像"), "muted")
    left = 10 + m * cell + 66
    s.text(left - 34, top + n * cell / 2 + 5, "×", "", size=20)
    filt = Grid(s, left, top + cell, cell, size=15)
    filt.fill(extent, extent, lambda r, q: ("c2", signed(window[r][q]).strip("()")))
    s.text(left + extent * cell / 2, 28, tr("window of the filter", "滤波器的窗口"), "muted")
    right = left + extent * cell + 66
    s.text(right - 34, top + n * cell / 2 + 5, "=", "", size=20)
    out = Grid(s, right, top + cell, cell, size=15)
    out.fill(
        out_high,
        out_wide,
        lambda r, q: ("c3", sum(products)) if (r, q) == (row, column) else "hollow",
    )
    s.text(right + out_wide * cell / 2, 28, tr("results", "结果"), "muted")
    terms = " + ".join(
        f"{image[row + r][column + q]} × {signed(window[r][q])}"
        for r in range(extent)
        for q in range(extent)
        if window[r][q]
    )
    alt = tr(
        f"An image of {n} by {m} numbers, of which {extent} by {extent} are marked; a window of {extent} by {extent} weights; and {out_high} by {out_wide} results, of which one is filled in: {sum(products)}.",
        f"{n} × {m} 个数的图像，其中 {extent} × {extent} 个有标记；{extent} × {extent} 个权重的窗口；{out_high} × {out_wide} 个结果，其中一个已填上：{sum(products)}。",
    )
    caption = tr(
        f"One result: words and weights at the same place are multiplied and added, {terms} = {sum(products)}. The window is not turned round.",
        f"一个结果：同一位置的字与权重相乘再相加，{terms} = {sum(products)}。窗口不翻转。",
    )
    return figure(s, alt=alt, caption=caption)


def halo(
    high: int = 8, wide: int = 14, tile: tuple[int, int] = (3, 5), at=(1, 1), window: int = 3
) -> str:
    """A tile of results, on the image: what its windows cover beside the tile itself is its halo."""
    cell, reach = 26, window // 2
    s = Svg(20 + (wide + 2 * reach) * cell, 44 + (high + 2 * reach) * cell + 40)
    grid = Grid(s, 10 + reach * cell, 10 + reach * cell, cell)
    top, left = at[0] * tile[0], at[1] * tile[1]
    first = (0, 0)

    def kind(r, q, top, left):
        if top <= r < top + tile[0] and left <= q < left + tile[1]:
            return "c1"
        if top - reach <= r < top + tile[0] + reach and left - reach <= q < left + tile[1] + reach:
            return "c2"
        return "hollow" if 0 <= r < high and 0 <= q < wide else None

    for r in range(-reach, high + reach):
        for q in range(-reach, wide + reach):
            cls = kind(r, q, *first)
            if cls in (None, "hollow"):
                cls = kind(r, q, top + 1, left + 2)
            if cls == "c2" and not (0 <= r < high and 0 <= q < wide):
                cls = "c2 dash"
            if cls:
                grid.box(r, q, cls)
    legend(
        s,
        10,
        24 + (high + 2 * reach) * cell,
        [
            ("c1", tr("tile of results", "结果的分块")),
            ("c2", tr("halo", "边缘区")),
            ("c2 dash", tr("outside of the image: zeros", "图像之外：零")),
        ],
    )
    covered = (tile[0] + 2 * reach) * (tile[1] + 2 * reach)
    alt = tr(
        f"An image of {high} by {wide} cells with two tiles of {tile[0]} by {tile[1]}, each within a frame of {reach} cell. The frame of the tile at the corner lies partly outside of the image.",
        f"{high} × {wide} 格的图像，上面有两个 {tile[0]} × {tile[1]} 的分块，各有一圈宽 {reach} 格的边框。角上的分块，边框有一部分在图像之外。",
    )
    caption = tr(
        f"Two tiles of {tile[0]} × {tile[1]} results and what windows of {window} × {window} need beside them. A block copies {covered} words for {tile[0] * tile[1]} results.",
        f"两个 {tile[0]} × {tile[1]} 的结果分块，以及 {window} × {window} 的窗口在它们周围还需要的字。线程块要为 {tile[0] * tile[1]} 个结果复制 {covered} 个字。",
    )
    return figure(s, alt=alt, caption=caption)


def owned(results: int = 7, wide: int = 8, filters: int = 8, warps: int = 4, lane: int = 10) -> str:
    """Which places of a tile a lane owns, and for how many filters; the warps of a block have other filters."""
    down = 32 // wide
    cell, high = 34, 13
    left, top = 76, 36
    wide_of_filters = 26
    s = Svg(left + wide * cell + 250 + 40, top + down * results * high + 30)
    grid = Grid(s, left, top, cell, high, gap=2, size=10)

    def kind(r, q):
        own = r // results * wide + q
        return "c3" if own == lane else ("c1" if (r // results + q) % 2 else "c0")

    grid.fill(down * results, wide, kind)
    for group in range(down):
        grid.name(
            group * results + (results - 1) / 2,
            tr(
                f"lanes\n{group * wide} to {group * wide + wide - 1}",
                f"lane\n{group * wide} 至 {group * wide + wide - 1}",
            ),
        )
    s.text(left + wide * cell / 2, 22, tr("places of the tile", "分块里的位置"), "muted")
    x = left + wide * cell + 60
    s.text(x + warps * 58 / 2, 22, tr("filters of the block", "线程块的滤波器"), "muted")
    for warp in range(warps):
        column = Grid(s, x + warp * 58, top, wide_of_filters * 1.7, high + 6, gap=2, size=10)
        for f in range(filters):
            column.box(f, 0, "c3" if warp == 0 else "c0", warp * filters + f)
        s.text(
            x + warp * 58 + wide_of_filters * 1.7 / 2,
            top + filters * (high + 6) + 14,
            tr(f"warp {warp}", f"线程束 {warp}"),
            "muted",
            size=11,
        )
    bracket(
        s,
        x,
        x + wide_of_filters * 1.7,
        top + filters * (high + 6) + 24,
        tr(f"lane {lane} of warp 0", f"线程束 0 的 lane {lane}"),
    )
    sums = results * filters
    alt = tr(
        f"A tile of {down * results} by {wide} places. Each lane of a warp has {results} places below each other. Beside it the {warps * filters} filters of the block, {filters} for each of {warps} warps. One lane of warp 0 is marked: {results} places and {filters} filters.",
        f"{down * results} × {wide} 个位置的分块。线程束的每个 lane 有上下相邻的 {results} 个位置。旁边是线程块的 {warps * filters} 个滤波器，{warps} 个线程束各 {filters} 个。标出了线程束 0 的一个 lane：{results} 个位置，{filters} 个滤波器。",
    )
    caption = tr(
        f"What lane {lane} of warp 0 owns: {results} places × {filters} filters = {sums} results. All warps of a block have the same places, and other filters.",
        f"线程束 0 的 lane {lane} 负责什么：{results} 个位置 × {filters} 个滤波器 = {sums} 个结果。线程块的所有线程束位置相同，滤波器不同。",
    )
    return figure(s, alt=alt, caption=caption)


def column(results: int = 7, rows: int = 3) -> str:
    """A column of the image in registers, and the results that each word is for."""
    words = results + rows - 1
    cell, high = 46, 26
    s = Svg(560, 30 + words * high + 20)
    column_of = Grid(s, 90, 24, cell, high)
    out = Grid(s, 330, 24 + (rows - 1) / 2 * high, cell, high)
    for i in range(results):
        for r in range(rows):
            x1, y1 = column_of.corner(i + r, 0)
            x2, y2 = out.corner(i, 0)
            s.line(x1 + cell - 2, y1 + high / 2 - 1, x2 - 2, y2 + high / 2 - 1, f"c{r + 1}")
    for i in range(words):
        column_of.box(i, 0, "c4", f"w{i}")
    for i in range(results):
        out.box(i, 0, "c5", f"s{i}")
    s.text(84, 24 + words * high / 2, tr("words", "字"), "muted", "end")
    s.text(392, 24 + words * high / 2, tr("sums", "累加值"), "muted", "start")
    alt = tr(
        f"On the left a column of {words} words, on the right {results} sums. Each sum is connected with {rows} words below each other.",
        f"左边是一列 {words} 个字，右边是 {results} 个累加值。每个累加值与上下相邻的 {rows} 个字相连。",
    )
    caption = tr(
        f"For one column of the window: {words} words are loaded once, and serve {results} results in {rows} rows of the window each. One by one that would be {results * rows} loads.",
        f"窗口的一列：{words} 个字只读一次，供 {results} 个结果各自的 {rows} 行使用。逐个读取则要 {results * rows} 次。",
    )
    return figure(s, alt=alt, caption=caption)
