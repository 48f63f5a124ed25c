"""Drawings of the chapter on radix sort: passes from the lowest digit on, the ranks of a warp, and a tile on its way through shared memory."""

import random

from cudatut.site.drawing import Grid, Svg, figure, hue, tr

KEYS = (42, 17, 43, 12, 27, 41, 13, 47)


def passes(keys: tuple[int, ...] = KEYS) -> str:
    """Keys of two decimal digits, after no pass, after the pass by the ones, and after that by the tens."""
    left, cell, row = 150, 62, 62
    s = Svg(left + len(keys) * cell + 8, 3 * row + 24)
    grid = Grid(s, left, 12, cell, row, gap=(10, 26), rx=4)
    tens = sorted({key // 10 for key in keys})
    stages = [list(keys)]
    stages.append(sorted(stages[0], key=lambda key: key % 10))
    stages.append(sorted(stages[1], key=lambda key: key // 10 % 10))
    names = (
        tr("keys", "键"),
        tr("by the ones", "按个位"),
        tr("by the tens", "按十位"),
    )
    for level, stage in enumerate(stages):
        s.text_to(left - 14, grid.center(level, 0)[1] + 5, names[level], "muted")
        grid.row(level, [(hue(tens.index(key // 10)), key) for key in stage])
        if level:
            for to, key in enumerate(stage):
                x, y = grid.center(level - 1, stages[level - 1].index(key))
                to_x, to_y = grid.center(level, to)
                s.arrow(x, y + row / 2 - 12, to_x, to_y - row / 2 + 10, "muted")
    listed = [", ".join(map(str, stage)) for stage in stages]
    alt = tr(
        f"The keys {listed[0]}. Sorted by their ones, equal ones in their order: {listed[1]}. Then by their tens, again in their order: {listed[2]}.",
        f"键 {listed[0]}。按个位排序，相同的保持次序：{listed[1]}。再按十位排序，同样保持次序：{listed[2]}。",
    )
    caption = tr(
        "Two passes over keys of two digits. A color is a digit of the tens. Keys with equal tens come out of the last pass in the order of their ones, because it leaves their order as it was.",
        "两位数的键排两趟。一种颜色是一个十位数字。十位相同的键，最后一趟保持它们的次序，所以个位仍然有序。",
    )
    return figure(s, alt=alt, caption=caption)


def tile(n: int = 16, digits: int = 4, seed: int = 4) -> str:
    """The keys of a tile in registers, in order in shared memory, and where their runs go in the output."""
    generator = random.Random(seed)
    tile_keys = [generator.randrange(digits) for _ in range(n)]
    order = sorted(range(n), key=lambda i: tile_keys[i])
    left, cell = 128, 33
    s = Svg(left + n * cell + 8, 250)
    own = Grid(s, left, 12, cell, 40, gap=(5, 8), rx=3)
    staged = Grid(s, left, 92, cell, 40, gap=(5, 8), rx=3)
    own.row(0, [(hue(d), d) for d in tile_keys])
    staged.row(0, [(hue(tile_keys[i]), tile_keys[i]) for i in order])
    for rank, i in enumerate(order):
        x, y = own.center(0, i)
        to_x, to_y = staged.center(0, rank)
        s.arrow(x, y + 17, to_x, to_y - 18, "muted")
    width = (n * cell - (digits - 1) * 14) / digits
    runs = []
    for digit in range(digits):
        x0, count = left + digit * (width + 14), tile_keys.count(digit)
        runs.append(count)
        s.rect(x0, 188, width, 30, "hollow")
        at = x0 + width * (0.2 + 0.12 * digit)
        wide = min(count * 13, width - (at - x0) - 4)
        s.rect(at, 191, wide, 24, hue(digit), str(count))
        first = sum(tile_keys.count(d) for d in range(digit))
        if count:
            middle = staged.center(0, first + (count - 1) / 2)
            s.arrow(middle[0], 130, at + wide / 2, 186)
    for y, name in (
        (38, tr("registers", "寄存器")),
        (118, tr("shared memory", "共享内存")),
        (208, tr("output", "输出")),
    ):
        s.text_to(left - 12, y, name, "muted")
    alt = tr(
        f"{n} keys of a tile, each with a digit from 0 to {digits - 1}. In shared memory they stand in the order of their digits. From there, runs of {', '.join(map(str, runs))} keys go to the places of their digits in the output.",
        f"一个分块的 {n} 个键，数字从 0 到 {digits - 1}。在共享内存里它们按数字排好，再以 {'、'.join(map(str, runs))} 个键为一段，写到输出里各数字的位置。",
    )
    caption = tr(
        "A tile is put in order in shared memory first. Then neighbors go to neighboring places, and a warp's store touches few sectors. A real tile has 8,192 keys and 256 digits, so 32 keys in a run on average.",
        "先在共享内存里把分块排好，相邻的键就写到相邻的位置，线程束写一次只碰到很少的扇区。真正的分块有 8,192 个键、256 种数字，平均每段 32 个键。",
    )
    return figure(s, alt=alt, caption=caption)
