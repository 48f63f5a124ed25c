"""Drawings for the last rungs: who draws which ticket, and in which order tiles of memory are read."""

from cudatut.site.drawing import Grid, Lanes, Svg, figure, hue, tr


def ticket(finish: tuple[int, ...] = (210, 330, 260, 400, 180)) -> str:
    """One bar per block, ending when it has its partial sum; the tickets follow from the order of the ends."""
    order = sorted(range(len(finish)), key=lambda b: finish[b])
    drawn = {b: k for k, b in enumerate(order)}
    last = order[-1]
    left, row = 84, 44
    s = Svg(left + max(finish) + 236, 24 + row * len(finish))
    lanes = Lanes(s, left, 14, 1, row, gap=(0, 14), rx=4)
    for b, end in enumerate(finish):
        lanes.named(b, 4, tr(f"block {b}", f"线程块 {b}"), "")
        lanes.bar(b, 0, end, "c1", tr("walk", "走遍数组"))
        text = tr(f"ticket {drawn[b]}", f"号码 {drawn[b]}")
        if b == last:
            sums = tr("adds all partial sums", "把所有部分和加起来")
            lanes.bar(b, end + 72, end + 228, "c3", sums)
        lanes.note(b, end, text, "warn" if b == last else "muted", away=6)
    sequence = ", ".join(map(str, order))
    alt = tr(
        f"{len(finish)} blocks finish in the order {sequence}. Each draws the next ticket; block {last} draws "
        f"{len(finish) - 1}, knows that it is the last, and adds all partial sums.",
        f"{len(finish)} 个线程块按 {sequence} 的次序结束，各取下一个号码；线程块 {last} 拿到 {len(finish) - 1} 号，可见是最后一个，于是把所有部分和加起来。",
    )
    caption = tr(
        f"Who draws ticket {len(finish) - 1} of {len(finish)} is last: all the others have published their partial sums "
        "before they drew. Nobody waits for anybody.",
        f"{len(finish)} 个线程块里，拿到 {len(finish) - 1} 号的就是最后一个：其他线程块都是先公布部分和、再取号的。各线程块互不等待。",
    )
    return figure(s, alt=alt, caption=caption)


def order(tiles: int = 12, resident: int = 3) -> str:
    """Tiles of memory: the block that reads each, when a resident grid walks and when each tile has a block."""
    cell = 46
    s = Svg(126 + tiles * cell + 6, 132)
    cells = Grid(s, 126, 16, cell, 62, gap=(4, 22), rx=4)
    cells.named(0, 4, tr("resident,\nwalking", "驻留的线程块\n往前走"))
    cells.named(1, 4, tr("one block\nper tile", "每个分块\n一个线程块"))
    walking = [t % resident for t in range(tiles)]
    for row, owners in enumerate((walking, range(tiles))):
        cells.row(row, [(hue(owner % resident), f"b{owner}") for owner in owners])
    alt = tr(
        f"{tiles} tiles of memory. Above, {resident} blocks take tile b, then b + {resident}, and so on; below, tile t has a "
        "block t of its own.",
        f"显存分成 {tiles} 个分块。上面 {resident} 个线程块依次处理第 b、b + {resident}……个分块；下面第 t 个分块由线程块 t 处理。",
    )
    caption = tr(
        f"{tiles} tiles and {resident} blocks at a time. A walking block that falls behind stays behind; with a block per "
        "tile the next free place takes the next tile, so that what is read at one moment lies close together.",
        f"共 {tiles} 个分块，同时运行 {resident} 个线程块。往前走的线程块一旦落后就一直落后；每个分块一个线程块时，空出来的位置总是接着取下一个分块，"
        "于是同一时刻读的位置彼此靠近。",
    )
    return figure(s, alt=alt, caption=caption)
