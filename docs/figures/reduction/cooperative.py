"""Drawings of the few-blocks form: who meets which element on the walk, and what a late block finds in place."""

from cudatut.site.drawing import Grid, Svg, figure, hue, tr

_CELL, _LEFT, _ROW = 40, 96, 56


def walk(n: int = 29, block: int = 4, grid: int = 3) -> str:
    """An array of n elements in rows of one turn each: box i holds the thread that adds element i, colored by block."""
    stride = grid * block
    turns = -(-n // stride)
    s = Svg(_LEFT + stride * _CELL + 8, 34 + turns * _ROW)
    cells = Grid(s, _LEFT, 28, _CELL, _ROW, gap=(4, 16), rx=4, size=13)
    for b in range(grid):
        name = tr(f"block {b}", f"线程块 {b}")
        s.text(cells.corner(0, (b + 0.5) * block)[0] - 2, 18, name)
    for turn in range(turns):
        s.text_from(4, 53 + turn * _ROW, tr(f"turn {turn + 1}", f"第 {turn + 1} 轮"), "muted")
        mine = range(turn * stride, min(n, (turn + 1) * stride))
        cells.row(turn, [(hue(i % stride // block), f"{i}\nt{i % block}") for i in mine])
    rest = n - (turns - 1) * stride
    alt = tr(
        f"{n} elements in {turns} rows. In each turn {grid} blocks of {block} threads take {stride} neighboring elements; "
        f"in the last turn only {rest} are left.",
        f"{n} 个元素排成 {turns} 行。{grid} 个线程块，每块 {block} 个线程，每一轮取相邻的 {stride} 个元素；最后一轮只剩 {rest} 个。",
    )
    caption = tr(
        f"{n} elements, {grid} blocks of {block} threads: i in the box, below it its thread. After a turn everyone steps "
        f"{stride} elements on, and at the end there are {grid} partial sums, however large n is.",
        f"{n} 个元素，{grid} 个线程块，每块 {block} 个线程：框内是下标 i，下面是负责这个元素的线程。每一轮之后，所有线程一起前进 {stride} 个元素；"
        f"不管 n 有多大，最后都只有 {grid} 个部分和。",
    )
    return figure(s, alt=alt, caption=caption)


def late(blocks: int = 4, block: int = 4) -> str:
    """An array in place: before, after every block but block 0, and what block 0 then adds."""
    values = [1 + (5 * i) % 7 for i in range(blocks * block)]
    sums = [sum(values[b * block : (b + 1) * block]) for b in range(blocks)]
    found = [values[0], *sums[1:block], *values[blocks:block]]
    after = [values[0], *sums[1:], *values[blocks:]]
    s, last = Svg(150 + len(values) * 35 + 6, 214), len(values)
    cells = Grid(s, 150, 20, 35, 64, gap=(4, 26), rx=4)
    tints = [f"c{[1, 3, 4, 5][i // block % 4]}" for i in range(last)]
    cells.named(0, 4, tr("input", "输入"))
    cells.named(1, 4, tr("blocks 1 and up\nare done", "其他线程块\n已经写完"))
    cells.row(0, zip(tints, values))
    cells.row(1, zip([tints[0], *["c2"] * (blocks - 1), *tints[blocks:]], after))
    for b in range(1, blocks):
        start, end = cells.corner(0, (b + 0.5) * block)[0] - 2, cells.center(0, b)[0] + 2
        s.arrow(start, 60, end, 82, "muted")
    for y, name, numbers, cls in (
        (160, tr("block 0 adds", "线程块 0 相加"), found, "warn"),
        (190, tr("it should be", "应该是"), values[:block], "good"),
    ):
        s.text_from(4, y, name, "muted")
        s.text_from(150, y, " + ".join(map(str, numbers)) + f" = {sum(numbers)}", cls)
    alt = tr(
        f"{blocks} blocks of {block} threads sum {len(values)} numbers in place. Blocks 1 to {blocks - 1} have written their "
        f"sums over numbers of block 0, which comes late and adds {sum(found)} in place of {sums[0]}.",
        f"{blocks} 个线程块，每块 {block} 个线程，原地对 {len(values)} 个数求和。线程块 1 到 {blocks - 1} 已经把部分和写到线程块 0 的数上，"
        f"迟到的线程块 0 加出来的是 {sum(found)}，而不是 {sums[0]}。",
    )
    caption = tr(
        f"In place, block b writes to place b, and places 0 to {blocks - 1} belong to block 0. If that one is late it adds "
        "partial sums in place of its own numbers.",
        f"原地求和时，线程块 b 写到位置 b，而位置 0 到 {blocks - 1} 归线程块 0 读。线程块 0 如果迟到，加的就是别的线程块的部分和，而不是输入里的数。",
    )
    return figure(s, alt=alt, caption=caption)
