"""A drawing of the way to the final kernel: when the copies of a step start, in three of its variants."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def starts(bk: int, of_a: int, of_b: int) -> dict[str, list[tuple[int, int]]]:
    """By variant, for each depth of a step, how many copies of A and of B a thread starts there; as in attempts.cu."""
    together, apart, spread = ([(0, 0)] * bk for _ in range(3))
    together[0], together[1] = (of_a, 0), (0, of_b)
    apart[1], apart[bk // 2] = (of_a, 0), (0, of_b)
    for number in range(of_a + of_b):
        spread[1 + number] = (1, 0) if number < of_a else (0, 1)
    return {"together": together, "apart": apart, "spread": spread}


def copies(bk: int = 16, of_a: int = 8, of_b: int = 4) -> str:
    """The depths of a step, and what is copied at each, in three rows."""
    variants = starts(bk, of_a, of_b)
    names = (
        tr("together", "紧挨着"),
        tr("half a step apart", "错开半步"),
        tr("one at each depth", "每个 k 一次"),
    )
    left, cell, row, top = 150, 32, 40, 30
    s = Svg(left + bk * cell + 20, top + row * len(names) + 8)
    cells = Grid(s, left, top, cell, row, gap=(3, 10), rx=0, size=12).heads(range(bk))
    s.text_to(left - 10, 20, tr("depth", "k"), "muted", 12)
    for number, (name, found) in enumerate(zip(names, variants.values())):
        cells.name(number, name, "", 13)
        for depth, (a, b) in enumerate(found):
            kind = ("c2", f"{a}A") if a else ("c3", f"{b}B") if b else "hollow muted"
            cells.row(number, [kind], first=depth)
    alt = tr(
        f"A step of {bk} depths. Together: {of_a} copies of A at depth 0, {of_b} of B at depth 1. Half a step apart: at 1 and at {bk // 2}. "
        f"One at each depth: from 1 to {of_a + of_b}.",
        f"一步有 {bk} 个 k。紧挨着：k = 0 处有 A 的 {of_a} 次复制，k = 1 处有 B 的 {of_b} 次。错开半步：在 k = 1 和 {bk // 2} 处。每个 k 一次：从 1 到 {of_a + of_b}。",
    )
    caption = tr(
        f"When a thread starts its copies of the tiles of A and B ({of_a} and {of_b} for a tile of 64 x 128) in a step. The second row stayed, "
        "the third was taken back.",
        f"线程在一步里何时发起 A、B 分块的复制（分块为 64×128 时各 {of_a} 次和 {of_b} 次）。第二行留了下来，第三行撤回了。",
    )
    return figure(s, alt=alt, caption=caption)
