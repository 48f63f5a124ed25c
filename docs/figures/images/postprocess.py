"""Drawings of the chapter on boxes and NMS: which boxes stay, who has to wait for whom, and the tiles of the mask of pairs."""

from cudatut.site.drawing import Grid, Svg, figure, legend, tr

LIMIT = 0.5
# By the score, the best first: x1, y1, x2, y2.
BOXES = (
    (14, 20, 114, 100),
    (39, 23, 139, 103),
    (226, 60, 296, 160),
    (69, 26, 169, 106),
    (232, 76, 302, 176),
    (82, 29, 182, 109),
)
SCORES = (0.95, 0.91, 0.88, 0.85, 0.71, 0.64)
TURNS = ("c3", "c2", "c4", "c5")


def _iou(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    wide, high = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(wide, 0) * max(high, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def _before(boxes: tuple[tuple[int, ...], ...] = BOXES) -> list[list[int]]:
    """Of each box, the better ones that it overlaps by more than the limit."""
    return [[j for j in range(i) if _iou(boxes[i], boxes[j]) > LIMIT] for i in range(len(boxes))]


def _greedy(before: list[list[int]]) -> list[bool]:
    stay: list[bool] = []
    for others in before:
        stay.append(not any(stay[j] for j in others))
    return stay


def _turns(before: list[list[int]]) -> list[int]:
    """The turn that decides each box, from 1 on."""
    n, turn = len(before), 0
    found, stay, gone = [0] * n, set[int](), set[int]()
    while len(stay | gone) < n:
        turn += 1
        new = {i for i in range(n) if i not in gone and all(j in gone for j in before[i])}
        stay |= new
        gone |= {i for i in range(n) if any(j in stay for j in before[i])}
        for i in stay | gone:
            found[i] = found[i] or turn
    return found


def greedy() -> str:
    """Boxes that overlap, and which of them stay."""
    before = _before()
    stay = _greedy(before)
    names = "ABCDEF"
    left, row = 360, 30
    s = Svg(690, 226)
    for i in reversed(range(len(BOXES))):
        x1, y1, x2, y2 = BOXES[i]
        s.rect(x1, y1, x2 - x1, y2 - y1, "hollow" if stay[i] else "hollow dash", rx=2)
    for i, (x1, y1, _x2, _y2) in enumerate(BOXES):
        s.text(x1 + 12, y1 + 18, names[i], "" if stay[i] else "muted")
    heads = (
        tr("score", "得分"),
        tr("overlaps", "与谁重叠"),
        tr("of these stay", "其中保留的"),
        tr("result", "结果"),
    )
    columns = (left + 50, left + 118, left + 200, left + 284)
    for x, head in zip(columns, heads):
        s.text(x, 26, head, "muted")
    for i, others in enumerate(before):
        y = 26 + (i + 1) * row
        s.text(left, y, names[i])
        s.text(columns[0], y, f"{SCORES[i]:.2f}")
        s.text(columns[1], y, ", ".join(names[j] for j in others) or "–")
        s.text(columns[2], y, ", ".join(names[j] for j in others if stay[j]) or "–")
        s.text(columns[3], y, tr("stays", "保留") if stay[i] else tr("gone", "去掉"), "" if stay[i] else "muted")  # fmt: skip
    that_stay = ", ".join(name for name, one in zip(names, stay) if one)
    alt = tr(
        f"Six boxes, A to F by their scores. Four of them, A, B, D and F, lie in a row, each shifted against the one before; C and E overlap elsewhere. Solid frames stay: {that_stay}.",
        f"六个框按得分记作 A 到 F。A、B、D、F 四个排成一串，每个都比前一个错开一些；C 和 E 在别处互相重叠。实线框保留：{that_stay}。",
    )
    caption = tr(
        "A removes B. So B removes nobody, and D stays, although D overlaps B; D then removes F. 'Overlaps' names the better boxes that a box overlaps by more than the limit.",
        "A 去掉 B，于是 B 不再去掉别人；D 虽然与 B 重叠，仍然保留，并且去掉 F。“与谁重叠”只列出得分更高、重叠超过阈值的框。",
    )
    return figure(s, alt=alt, caption=caption)


def turns(before: tuple[tuple[int, ...], ...] = ((), (0,), (), (1,), (2,), (3, 4), (), (6,), (0, 2), (5, 7))) -> str:  # fmt: skip
    """Boxes in order, the earlier ones that each overlaps, and the turn that decides it."""
    neighbors = [list(one) for one in before]
    stay, when = _greedy(neighbors), _turns(neighbors)
    n, left, cell, top = len(before), 128, 54, 132
    s = Svg(left + n * cell + 10, top + 130)
    row = Grid(s, left, top, cell, 40, gap=(12, 10), rx=4)
    for i in range(n):
        x, y = row.center(0, i)
        for j in neighbors[i]:
            from_x = row.center(0, j)[0]
            high = 14 + 13 * (i - j)
            middle = (x + from_x) / 2
            s.polyline(
                [(from_x + 5, y - 20), (from_x + 14, y - 20 - high), (middle, y - 24 - high), (x - 14, y - 20 - high), (x - 5, y - 20)],
                "muted",
            )  # fmt: skip
    row.row(0, [(TURNS[when[i] - 1], i) for i in range(n)])
    row.row(1, [("" if stay[i] else "hollow dash", "") for i in range(n)])
    for i in range(n):
        x, y = row.center(1, i)
        s.text(x, y + 5, tr("stays", "保留") if stay[i] else tr("gone", "去掉"), "" if stay[i] else "muted", size=12)  # fmt: skip
    s.text_to(left - 12, row.center(0, 0)[1] + 5, tr("boxes", "框"), "muted")
    s.text_to(left - 12, row.center(1, 0)[1] + 5, tr("result", "结果"), "muted")
    last = max(when)
    legend(s, left, top + 108, [(TURNS[k - 1], tr(f"turn {k}", f"第 {k} 轮")) for k in range(1, last + 1)])  # fmt: skip
    by_turn = [[i for i in range(n) if when[i] == k] for k in range(1, last + 1)]
    listed = "; ".join(tr(f"turn {k}: {', '.join(map(str, one))}", f"第 {k} 轮：{'、'.join(map(str, one))}") for k, one in enumerate(by_turn, 1))  # fmt: skip
    alt = tr(
        f"{n} boxes in a row, the best first, with lines between boxes that overlap. Colors say in which turn a box is decided: {listed}.",
        f"{n} 个框排成一行，得分高的在前，重叠的框之间有连线。颜色表示在第几轮判定：{listed}。",
    )
    caption = tr(
        f"Lines connect boxes that overlap. {n} boxes need {last} turns, not {n}: what counts is the longest chain of boxes of which each has to know what became of the one before.",
        f"连线表示重叠。{n} 个框只要 {last} 轮，而不是 {n} 轮：起作用的是最长的那条链，链上每个框都要先知道前一个框的结果。",
    )
    return figure(s, alt=alt, caption=caption)


def tiles(count: int = 7, tile: int = 64, own: int = 4) -> str:
    """The mask of pairs by tiles, with the part that the block of one tile looks at."""
    left, top, cell = 150, 40, 34
    s = Svg(left + count * cell + 240, top + count * cell + 34)
    grid = Grid(s, left, top, cell, cell, gap=(4, 4), rx=2)
    grid.heads(range(count))

    def kind(row: int, column: int) -> str:
        if row > column:
            return "hollow"
        return ("c2" if row < column else "c3") if column == own else "c1"

    for row in range(count):
        for column in range(count):
            if row <= column:
                grid.box(row, column, kind(row, column), "")
        s.text_to(left - 10, grid.center(row, 0)[1] + 5, str(row), "muted")
    s.text_to(left - 30, grid.center(0, 0)[1] + 5, tr("tile of\nbox i", "框 i 的\n分块"), "muted")  # fmt: skip
    s.text(left + count * cell / 2, 14, tr("tile of box j", "框 j 的分块"), "muted")
    side = left + count * cell + 24
    legend(s, side, top + 20, [("c2", tr("earlier tiles, asked by", "更早的分块，询问者为"))])
    s.text_from(side + 24, top + 50, tr(f"the block of tile {own}", f"第 {own} 个分块的线程块"))
    legend(s, side, top + 84, [("c3", tr("inside the tile: ballots", "分块内部：投票"))])
    alt = tr(
        f"A square of {count} by {count} tiles, of which the upper right triangle is filled. Column {own} is marked: {own} tiles above the diagonal, and the tile on it.",
        f"{count} × {count} 个分块组成的方阵，只填了右上三角。第 {own} 列另作标记：对角线以上 {own} 个分块，以及对角线上的那一个。",
    )
    caption = tr(
        f"Each square stands for {tile} x {tile} pairs, a bit for each. Whether box j overlaps box i says the same as whether i overlaps j, so half of the square is enough.",
        f"每个方格代表 {tile} × {tile} 对，每对一位。j 与 i 重叠就是 i 与 j 重叠，所以只要一半。",
    )
    return figure(s, alt=alt, caption=caption)
