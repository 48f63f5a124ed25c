"""Drawings of unified memory: pages on two sides, and which pieces of a block a walk moves with each fault."""

from __future__ import annotations

from collections.abc import Sequence

from cudatut.site.drawing import Grid, Svg, figure, legend, tr

PIECES, PERCENT = 32, 51  # pieces of 64 KB in a block of 2 MB; the driver's threshold


def moved(touched: Sequence[int], pieces: int = PIECES) -> list[tuple[int, set[int]]]:
    """The piece that faults and those that come with it, for each touch of a piece that is not there yet."""
    here, steps = set[int](), []
    for piece in touched:
        if piece in here:
            continue
        came, wide = {piece}, 1
        while wide < pieces:
            wide *= 2
            part = set(range(piece - piece % wide, piece - piece % wide + wide))
            if 100 * len(part & (here | {piece})) > PERCENT * wide:
                came = part - here
        here |= came
        steps.append((piece, came))
    return steps


def two_sides(pages: int = 12, touched: int = 5, together: int = 4) -> str:
    """One array, whose pages lie in two memories; a touch of the GPU moves the page and its neighbors."""
    cell, left, top, row = 42, 104, 34, 74
    s = Svg(left + cell * pages + 10, top + 2 * row + 8)
    boxes = Grid(s, left, top, cell, row, gap=(4, 38), rx=3)
    first = touched - touched % together
    moves = range(first, first + together)
    s.text(
        left + cell * (touched + 0.5),
        top - 12,
        tr("the GPU touches this page", "GPU 访问这一页"),
        "accent",
    )
    boxes.name(0, tr("host memory", "主机内存"), "")
    boxes.name(1, tr("GPU memory", "显存"), "")
    boxes.row(0, ["hollow muted" if page in moves else "c1" for page in range(pages)])
    boxes.row(1, ["c2" if page in moves else "hollow muted" for page in range(pages)])
    for page in moves:
        x = left + cell * (page + 0.5)
        s.arrow(x, top + 42, x, top + row - 6, "accent" if page == touched else "muted")
    alt = tr(
        f"{pages} pages of one array. The GPU touches page {touched}: it and {together - 1} neighbors move from the host's memory to the GPU's.",
        f"一个数组的 {pages} 个页。GPU 访问第 {touched} 页，这一页连同相邻的 {together - 1} 页从主机内存移到显存。",
    )
    caption = tr(
        "One array, one address for each page, two places where it can lie. A touch on the other side is a page fault: "
        "the driver moves the page, and neighbors with it.",
        "一个数组，每一页只有一个地址，却可以放在两处。访问不在自己这一边的页会引起缺页，驱动就把这一页移过来，相邻的页也一起移。",
    )
    return figure(s, alt=alt, caption=caption)


def walk(touched: Sequence[int] = range(PIECES)) -> str:
    """What each fault of a walk moves: a row for each fault, a box for each piece."""
    steps = moved(touched)
    cell, left, top, row = 17, 84, 12, 26
    s = Svg(left + cell * PIECES + 66, top + row * len(steps) + 44)
    boxes, here = Grid(s, left, top, cell, row, gap=(2, 8), rx=2), set[int]()
    for number, (piece, came) in enumerate(steps):
        boxes.name(number, tr(f"fault {number + 1}", f"第 {number + 1} 次"), "")
        boxes.row(
            number,
            [
                "c2 solid"
                if one == piece
                else "c2"
                if one in came
                else "c1"
                if one in here
                else "hollow muted"
                for one in range(PIECES)
            ],
        )
        boxes.note(number, PIECES, f"{64 * len(came)} KB", "muted")
        here |= came
    entries = (
        ("c2 solid", tr("touched", "被访问")),
        ("c2", tr("comes with it", "一起移来")),
        ("c1", tr("there before", "之前已在")),
    )
    legend(s, left, top + row * len(steps) + 12, entries)
    alt = tr(
        f"{PIECES} pieces of 64 KB. {len(steps)} faults move "
        + ", ".join(str(len(came)) for _, came in steps)
        + " pieces.",
        f"{PIECES} 个 64 KB 的小段。{len(steps)} 次缺页依次移动 "
        + "、".join(str(len(came)) for _, came in steps)
        + " 个小段。",
    )
    caption = tr(
        f"A walk upwards through a block of 2 MB, whose pages lie on the other side: {len(steps)} faults, though there are {PIECES} pieces.",
        f"从低到高走过一个 2 MB 的块，页原来都在另一边：{PIECES} 个小段，只有 {len(steps)} 次缺页。",
    )
    return figure(s, alt=alt, caption=caption)
