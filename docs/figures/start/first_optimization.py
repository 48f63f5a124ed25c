"""Drawings of the first optimization: who adds which element."""

from cudatut.site.drawing import Grid, Svg, bracket, figure, hue, tr

_CELL, _HEIGHT, _LEFT = 40, 32, 14


def _turn(s: Svg, y: float, first: int, count: int, number: int) -> None:
    """Mark `count` elements from `first` as one turn of the loop, below a row of cells at y."""
    left, right = _LEFT + _CELL * first + 3, _LEFT + _CELL * (first + count) - 3
    bracket(s, left, right, y + _HEIGHT + 6, tr(f"turn {number}", f"第 {number} 轮"), deep=5)


def shares(n: int = 14, block: int = 4, grid: int = 2) -> str:
    """The same n elements shared out in the four ways of the chapter; a color is a thread or a block.

    block: threads per block. grid: blocks of the grid-stride version.
    """
    blocks = -(-n // block)
    slots = blocks * block
    s = Svg(2 * _LEFT + _CELL * max(slots, n), 418)

    def row(y: float, title: str, color, count: int = n) -> None:
        s.text_from(_LEFT, y - 10, title, "bold")
        kinds = [(hue(color(i)) if i < n else "hollow dash muted", i) for i in range(count)]
        Grid(s, _LEFT, y, _CELL, _HEIGHT + 3, rx=3).row(0, kinds)

    y = 28
    row(y, tr(f"One thread: {n} turns", f"一个线程：{n} 轮"), lambda i: 0)
    s.arrow(_LEFT, y + _HEIGHT + 14, _LEFT + _CELL * n - 3, y + _HEIGHT + 14, "muted")
    y += 100
    turns = -(-n // block)
    title = tr(
        f"One block of {block} threads: {turns} turns, a color per thread",
        f"一个线程块，{block} 个线程：{turns} 轮，每种颜色是一个线程",
    )
    row(y, title, lambda i: i % block)
    for turn in range(turns):
        _turn(s, y, turn * block, min(block, n - turn * block), turn + 1)
    y += 112
    title = tr(
        f"{blocks} blocks of {block} threads: one turn, a color per block; {slots - n} threads have no element",
        f"{blocks} 个线程块，各 {block} 个线程：一轮完成，每种颜色是一个线程块；{slots - n} 个线程没有元素",
    )
    row(y, title, lambda i: i // block, slots)
    y += 84
    stride = grid * block
    rounds = -(-n // stride)
    title = tr(
        f"Grid-stride, {grid} blocks of {block} threads: {rounds} turns, a color per block",
        f"网格跨步，{grid} 个线程块，各 {block} 个线程：{rounds} 轮，每种颜色是一个线程块",
    )
    row(y, title, lambda i: i % stride // block)
    for turn in range(rounds):
        _turn(s, y, turn * stride, min(stride, n - turn * stride), turn + 1)
    alt = tr(
        f"Four rows of {n} array elements. One thread takes them one by one; one block of {block} threads takes "
        f"{block} neighbors per turn, {turns} turns; {blocks} blocks take everything in one turn, with {slots - n} "
        f"threads left over; {grid} blocks with a grid stride take {stride} neighbors per turn, {rounds} turns.",
        f"四行，每行 {n} 个数组元素。一个线程逐个处理；一个 {block} 线程的线程块每轮处理相邻的 {block} 个，共 {turns} 轮；"
        f"{blocks} 个线程块一轮处理完，剩下 {slots - n} 个线程没有元素；{grid} 个线程块按网格跨步，每轮处理相邻的 {stride} 个，共 {rounds} 轮。",
    )
    caption = tr(
        f"n = {n}, blocks of {block}. Within a turn neighboring threads always take neighboring elements.",
        f"n = {n}，每块 {block} 个线程。在同一轮里，相邻的线程总是处理相邻的元素。",
    )
    return figure(s, alt=alt, caption=caption)
