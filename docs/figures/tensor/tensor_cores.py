"""Figures of the chapter on tensor cores: two kinds of instructions, who holds which element, and the roofline."""

from cudatut.site import references
from cudatut.site.drawing import Grid, Roofline, Svg, figure, tr

EXAMPLE = "tensor/tensor_cores"
DIGITS = "0123456789abcdefghijklmnopqrstuv"


def instructions(rows: int = 16, columns: int = 8, depth: int = 16) -> str:
    """What a warp's FMA does, and what one instruction on the tensor cores does."""
    cell, top = 11, 66
    left_fma, left = 20, 330
    s = Svg(700, top + (depth + rows) * cell + 60)
    s.text(left_fma + 110, 22, tr("an FMA instruction", "一条 FMA 指令"), "bold")
    below = tr("32 lanes, one FMA each", "32 个 lane，各一次 FMA")
    s.text(left_fma + 110, 42, below, "muted", size=12)
    lanes = Grid(s, left_fma, top + 20, 28, 40, gap=(4, 16), rx=4, size=11)
    lanes.fill(4, 8, lambda r, c: (f"c{1 + r}", 8 * r + c))
    s.text(left_fma + 110, top + 210, tr("32 FMAs", "32 次 FMA"), "accent")
    x_b, y_a = left + depth * cell + 24, top + depth * cell + 24
    s.text(left + 170, 22, tr("a tensor core instruction", "一条张量核心指令"), "bold")
    below = tr("32 lanes hold matrices together", "32 个 lane 合起来持有矩阵")
    s.text(left + 170, 42, below, "muted", size=12)
    a = Grid(s, left, y_a, cell, gap=1, rx=0)
    a.fill(rows, depth, lambda r, c: "c3 solid" if r == 4 else "c1")
    b = Grid(s, x_b, top, cell, gap=1, rx=0)
    b.fill(depth, columns, lambda r, c: "c3 solid" if c == 2 else "c2")
    sums = Grid(s, x_b, y_a, cell, gap=1, rx=0)
    sums.fill(rows, columns, lambda r, c: "c3 solid" if (r, c) == (4, 2) else "c0")
    s.text(left + depth * cell / 2, y_a - 10, f"A, {rows} × {depth}", "bold", size=12)
    right, middle = x_b + columns * cell + 12, y_a + rows * cell / 2
    s.text_from(right, top + depth * cell / 2, f"B, {depth} × {columns}", "bold", 12)
    s.text_from(right, middle, f"{rows} × {columns}", "bold", 12)
    s.text_from(right, middle + 18, tr("sums, fp32", "累加值，fp32"), "muted", 12)
    fmas = rows * columns * depth
    product = f"{rows} · {columns} · {depth} = {fmas} " + tr("FMAs", "次 FMA")
    s.text(left + 170, y_a + rows * cell + 28, product, "accent")
    alt = tr(
        f"Left: 32 lanes, each with one FMA. Right: a matrix of {rows} by {depth} times one of {depth} by {columns}, which is {fmas} FMAs; a row of A "
        "and a column of B give one of the sums.",
        f"左：32 个 lane，各做一次 FMA。右：{rows} x {depth} 的矩阵乘 {depth} x {columns} 的矩阵，共 {fmas} 次 FMA；A 的一行与 B 的一列得到一个累加值。",
    )
    caption = tr(
        f"One instruction of a warp: 32 FMAs, or {fmas}. A row of A and a column of B ({depth} products) are added to one sum.",
        f"线程束的一条指令：32 次 FMA，或者 {fmas} 次。A 的一行与 B 的一列（{depth} 个乘积）加到一个累加值上。",
    )
    return figure(s, alt=alt, caption=caption)


def holders(lane: int = 5) -> str:
    """The three fragments of WMMA as one run found them: the lane of each element, those of one lane with their place."""
    found = references.facts(EXAMPLE, "holders")
    cell, top, gap = 13, 54, 22
    s = Svg(16 * cell * 3 + 2 * gap + 20, top + 16 * cell + 34)
    mine: dict[str, list[tuple[int, int]]] = {}
    names = {"A": "A", "B": "B", "C": tr("sums", "累加值")}
    for number, (name, title) in enumerate(names.items()):
        lanes = [DIGITS.index(digit) for digit in str(found[f"{name}: lane"])]
        places = [DIGITS.index(digit) for digit in str(found[f"{name}: place in x"])]
        cells = Grid(s, 10 + number * (16 * cell + gap), top, cell, gap=1, rx=0)
        middle = cells.x + 8 * cell
        s.text(middle, 22, title, "bold").text(middle, 40, "16 × 16", "muted", size=12)
        for element, holder in enumerate(lanes):
            at = divmod(element, 16)
            if holder == lane:
                mine.setdefault(title, []).append(at)
                cells.box(*at, "c3 solid", places[element], size=10)
            else:
                cells.box(*at, f"c{1 + holder // 8 % 2}", holder, size=10)
    rows = "; ".join(
        f"{title}: {', '.join(str(at) for at in cells)}" for title, cells in mine.items()
    )
    alt = tr(
        f"Three matrices of 16 by 16 with the lane that holds each element. Lane {lane} holds, by row and column, {rows}.",
        f"三个 16 x 16 矩阵，每个元素标着所在的 lane。lane {lane} 持有的元素（行，列）：{rows}。",
    )
    caption = tr(
        f"The lane that holds each element, as the kernel found it on this GPU. Highlighted are the elements of lane {lane}, with their place in `x`.",
        f"每个元素由哪个 lane 持有，是 kernel 在这块 GPU 上查到的。突出显示的是 lane {lane} 的元素，数字是元素在 `x` 中的位置。",
    )
    return figure(s, alt=alt, caption=caption)


def roofline() -> str:
    """The roof of the L2 cache, those of both kinds of instructions, and the kernels under them."""
    roofs, points = references.table(EXAMPLE, "roofs"), references.table(EXAMPLE, "bound")
    brings = references.facts(EXAMPLE, "l2")
    fma, tensor = roofs["FFMA"]["rate"], roofs["HMMA"]["rate"]
    l2, memory = brings["L2 cache"], brings["memory"]
    xs = [point["FLOPs per byte"] for point in points.values()]
    x = min(xs) / 2.5, max(*xs, 1e3 * tensor / min(l2, memory)) * 2
    y = min(point["measured"] for point in points.values()) / 2, tensor * 1.8
    field = Roofline(x, y, bottom=340, every=1, steps=(1, 2, 5))
    field.slope(l2, tensor, "c3", "L2").slope(memory, tensor, "muted", tr("memory", "显存"))
    field.roof(fma, l2, "accent", f"FFMA {fma:.0f} TFLOP/s")
    field.roof(tensor, l2, "c2", f"HMMA {tensor:.0f} TFLOP/s")
    for name, point in points.items():
        at, rate = point["FLOPs per byte"], point["measured"]
        cls = "c2 solid" if name.startswith("wmma") else "c5 solid"
        field.dot(at, rate, cls, tip=f"{name}: {rate:.1f} TFLOP/s, {at:.1f} FLOP/B")
        field.say(at, rate, name, "mono", 10, 16)
    alt = tr(
        f"Roofline with the slope of the L2 cache and two level roofs, {fma:.0f} and {tensor:.0f} TFLOP/s. "
        + " ".join(
            f"{name} stands at {p['FLOPs per byte']:.0f} FLOP per byte and {p['measured']:.0f} TFLOP/s."
            for name, p in points.items()
        ),
        f"roofline：L2 缓存的斜线和两条水平线，{fma:.0f} 与 {tensor:.0f} TFLOP/s。"
        + "".join(
            f"{name} 位于每字节 {p['FLOPs per byte']:.0f} FLOP、{p['measured']:.0f} TFLOP/s。"
            for name, p in points.items()
        ),
    )
    caption = tr(
        "The roofline with its new roof. Kernels stand at their operations per byte between the L2 cache and the SMs, so the slope of L2 is theirs; that "
        "of memory is there for comparison.",
        "加上新屋顶的 roofline。kernel 的横坐标是 L2 缓存与 SM 之间每传输一个字节做多少次运算，所以应当看 L2 的斜线；显存的斜线只供对照。",
    )
    return figure(field.s, alt=alt, caption=caption)
