"""Drawings of Winograd's convolution: four multiplications for six, tiles that overlap, and the way through the transforms."""

from cudatut.site.drawing import Grid, Svg, bracket, figure, tr

WORDS = "d0 − d2", "d1 + d2", "d2 − d1", "d3 − d1"
WEIGHTS = "g0", "(g0 + g1 + g2) / 2", "(g0 − g1 + g2) / 2", "g2"
RESULTS = "m0 + m1 + m2", "m1 − m2 + m3"


def one() -> str:
    """F(2, 3): words and weights become four numbers each, their products two results."""
    left, cell, row = 116, 146, 40
    s = Svg(left + 4 * cell + 8, 7 * row + 20)
    cells = Grid(s, left, 8, cell, row, gap=(10, 14), rx=4)
    cells.row(0, [("c1", f"d{i}") for i in range(4)])
    cells.row(1, [("c1", text) for text in WORDS])
    cells.row(2, [("c3", text) for text in WEIGHTS])
    cells.row(4, [("c2", f"m{i}") for i in range(4)])
    for i in range(4):
        x, y = cells.center(3, i)
        s.text(x, y - 8, "×", "bold")
        s.arrow(x, y, x, cells.center(4, i)[1] - row / 2 + 5, "muted")
    for k, text in enumerate(RESULTS):
        x, y = cells.center(6, 0.5 + 2 * k)
        s.rect(x - 80, y - 14, 160, 28, "c4", text)
        for i in range(3):
            from_x, from_y = cells.center(4, i + k)
            s.line(from_x, from_y + 13, x, y - 14, "muted")
    names = (
        (0, tr("words", "输入")),
        (1, tr("their sums", "输入的和差")),
        (2, tr("of weights", "权重的和差")),
        (4, tr("products", "乘积")),
        (6, tr("results", "结果")),
    )
    for at, name in names:
        s.text_to(left - 12, cells.center(at, 0)[1] + 5, name, "muted")
    alt = tr(
        "Four words d0 to d3 become four sums and differences. Each is multiplied by a sum of the weights g0 to g2. The two results are sums of three of the four products.",
        "四个输入 d0 到 d3 变成四个和或差，各自乘以权重 g0 到 g2 的一个组合；两个结果各是四个乘积中三个的和或差。",
    )
    caption = tr(
        "F(2, 3): two results of three weights by four multiplications. The sums of weights are the same for the whole image.",
        "F(2, 3)：三个权重、两个结果，只要四次乘法。权重的组合对整张图像都一样。",
    )
    return figure(s, alt=alt, caption=caption)


def tiles(m: int = 4, results: int = 10, pad: int = 1) -> str:
    """Tiles of m x m results, and the words that the first two of them read."""
    size, cell, top = results + 2 * pad, 22, 30
    left, right = 20, 20 + (size + 3) * 22 + 60
    s = Svg(right + results * cell + 20, top + size * cell + 20)
    s.text_from(left, 18, tr("words of the image", "图像的像素"), "bold")
    s.text_from(right, 18, tr("results", "结果"), "bold")

    def kind(y: int, x: int) -> str:
        first, second = max(y, x) < m + 2, y < m + 2 and m <= x < 2 * m + 2
        cls = ("c0", "c1", "c2", "c4")[first + 2 * second]
        edge = min(y, x, size - 1 - y, size - 1 - x) < pad
        return f"{cls} dash" if edge else cls

    Grid(s, left, top, cell).fill(size, size, kind)
    made = Grid(s, right, top + pad * cell, cell)
    made.fill(results, results, lambda y, x: f"c{1 + (y // m + x // m) % 2}")
    count = -(-results // m)
    alt = tr(
        f"An image with a border of {pad}, and {results} x {results} results in tiles of {m} x {m}. The first tile reads {m + 2} x {m + 2} words; its neighbor reads as many, of which two columns are the same.",
        f"带 {pad} 个像素边框的图像，以及按 {m} × {m} 分块的 {results} × {results} 个结果。第一个分块读取 {m + 2} × {m + 2} 个像素，相邻的分块读取同样多，其中两列相同。",
    )
    caption = tr(
        f"Each tile of {m} x {m} results needs {m + 2} x {m + 2} words, and neighbors share two columns (violet) or rows. For {results} x {results} results there are {count} x {count} tiles"
        + (", and the last ones hang over the edges." if results % m else "."),
        f"每个 {m} × {m} 的结果分块要用 {m + 2} × {m + 2} 个像素，相邻分块共用两列（紫色）或两行。{results} × {results} 个结果需要 {count} × {count} 个分块"
        + ("，最后的分块伸出图像之外。" if results % m else "。"),
    )
    return figure(s, alt=alt, caption=caption)


def steps(m: int = 4) -> str:
    """The way of words and weights through the transforms, and one product for each place of a tile."""
    places = (m + 2) ** 2
    s = Svg(700, 268)

    def stack(x: float, y: float, w: float, h: float, cls: str, text: str, below: str):
        for k in (3, 2, 1):
            s.rect(x + 6 * k, y - 6 * k, w, h, cls)
        s.rect(x, y, w, h, cls, text)
        s.text(x + w / 2, y + h + 18, below, "muted")

    s.rect(10, 30, 92, 74, "c1", tr("images", "图像"))
    s.rect(10, 172, 92, 50, "c3", tr("weights", "权重"))
    stack(200, 40, 110, 62, "c1", "V", tr("channels × tiles", "通道 × 分块"))
    stack(200, 178, 74, 52, "c3", "U", tr("channels × filters", "通道 × 滤波器"))
    stack(424, 100, 110, 52, "c2", "M", tr("filters × tiles", "滤波器 × 分块"))
    s.rect(600, 86, 92, 74, "c4", tr("results", "结果"))
    s.arrow(106, 67, 194, 67, "", "B")
    s.arrow(106, 197, 194, 197, "", "G")
    s.line(334, 67, 366, 116, "")
    s.line(298, 197, 366, 140, "")
    s.circle(374, 128, 12, "c0", "×")
    s.arrow(388, 128, 418, 128, "")
    s.arrow(558, 124, 594, 124, "", "A")
    bracket(s, 424, 534, 186, tr(f"{places} of each", f"各 {places} 个"))
    alt = tr(
        f"Images become V, weights U: {places} matrices each. Their products are {places} matrices M, which become the results.",
        f"图像变换成 V，权重变换成 U，各有 {places} 个矩阵；对应相乘得到 {places} 个矩阵 M，再变换成结果。",
    )
    caption = tr(
        f"F({m} x {m}, 3 x 3): a tile has {places} places, and for each of them there is one product, whose depth are the channels.",
        f"F({m} × {m}, 3 × 3)：一个分块有 {places} 个位置，每个位置对应一个矩阵乘，深度就是通道数。",
    )
    return figure(s, alt=alt, caption=caption)
