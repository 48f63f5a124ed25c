"""Drawings of the chapter on pixels: the bytes of an image in both orders, which pixels a warp has, and four pixels in three words."""

from cudatut.site.drawing import Grid, Svg, figure, legend, tr

CHANNELS = (("c3", "B"), ("c1", "G"), ("c6", "R"))  # blue first, as OpenCV has them


def layouts(height: int = 2, width: int = 3) -> str:
    """A small image, and where its bytes lie in HWC and in CHW."""
    pixels, bytes_ = height * width, 3 * height * width
    left, cell = 92, 34
    s = Svg(left + bytes_ * cell + 10, 232)
    image = Grid(s, left, 18, 62, 40, gap=4)
    image.fill(height, width, lambda y, x: ("hollow", f"{y * width + x}"))
    s.text_to(left - 12, 18 + 44, tr("image", "图像"), "muted")
    orders = {
        "HWC": [(i // 3, i % 3) for i in range(bytes_)],
        "CHW": [(i % pixels, i // pixels) for i in range(bytes_)],
    }
    for row, (name, order) in enumerate(orders.items()):
        cells = Grid(s, left, 122 + 46 * row, cell, 34, gap=(3, 4))
        for i, (pixel, channel) in enumerate(order):
            cls, letter = CHANNELS[channel]
            cells.box(0, i, cls, f"{letter}{pixel}", size=12)
        s.text_to(left - 12, cells.center(0, 0)[1] + 5, name, "mono")
    kinds = [tr("blue", "蓝"), tr("green", "绿"), tr("red", "红")]
    legend(s, left, 212, [(cls, kind) for (cls, _), kind in zip(CHANNELS, kinds)])
    alt = tr(
        f"An image of {height} rows and {width} columns, pixels 0 to {pixels - 1}. HWC: B0 G0 R0 B1 G1 R1 and so on, the three bytes of a pixel beside each other. CHW: all blue bytes, then all green ones, then all red ones.",
        f"{height} 行 {width} 列的图像，像素 0 到 {pixels - 1}。HWC：B0 G0 R0 B1 G1 R1……，一个像素的三个字节挨在一起。CHW：先是所有蓝色字节，再是绿色，最后是红色。",
    )
    caption = tr(
        f"The {bytes_} bytes of the same image in both orders. Blue comes first, as OpenCV reads a file.",
        f"同一幅图像的 {bytes_} 个字节，两种次序。蓝色在前，OpenCV 读文件就是这样。",
    )
    return figure(s, alt=alt, caption=caption)


def warps(width: int = 12, height: int = 8, lanes: int = 8, block: int = 2) -> str:
    """The pixels of one warp where x of the grid goes along a row, and where it goes down; drawn with `lanes` lanes.

    block: warps of a block. Shaded: the sectors that one request touches, `lanes` bytes each of a row.
    """
    cell, apart = 24, 70
    s = Svg(2 * (width * cell + 40) + apart - 40, height * cell + 76)
    names = (
        tr("x along a row", "x 沿着一行"),
        tr("x down", "x 向下"),
    )
    touched = []
    for part, name in enumerate(names):
        left = 20 + part * (width * cell + apart)
        cells = Grid(s, left, 34, cell, gap=3)
        own = {(2, 1 + i) if part == 0 else (i, 4): i for i in range(lanes)}
        beside = {(3, 1 + i) if part == 0 else (i, 5) for i in range(lanes) if block > 1}

        def kind(y, x, own=own, beside=beside):
            if (y, x) in own:
                return "c1 solid", own[y, x]
            return "c1" if (y, x) in beside else "hollow"

        cells.fill(
            height,
            width,
            kind,
        )
        s.text(left + width * cell / 2, 22, name, "bold")
        touched.append(len({y for y, _ in own}))
    legend(
        s,
        20,
        height * cell + 52,
        [
            ("c1 solid", tr("a warp, with its lanes", "一个线程束及其各 lane")),
            ("c1", tr("the next warp", "下一个线程束")),
        ],
    )
    alt = tr(
        f"An image of {width} x {height} pixels, twice. Left, the lanes of a warp have neighbors of one row. Right, they have pixels of {touched[1]} rows, one below the other.",
        f"两幅 {width} x {height} 像素的图像。左：一个线程束的各 lane 负责同一行里相邻的像素。右：它们负责 {touched[1]} 行上下相邻的像素。",
    )
    caption = tr(
        f"Drawn with {lanes} lanes. Left, a request of the warp touches bytes of one row; right, of {touched[1]} rows, which lie far apart in memory.",
        f"按 {lanes} 个 lane 画出。左：线程束的一次请求落在同一行的字节上；右：落在 {touched[1]} 行上，它们在内存里相隔很远。",
    )
    return figure(s, alt=alt, caption=caption)


def words() -> str:
    """Four pixels as three words, before and after the swap, with the way of two bytes."""
    left, cell, row = 92, 44, 88
    s = Svg(left + 12 * cell + 3 * 14, 166)
    before = [(channel, pixel) for pixel in range(4) for channel in (0, 1, 2)]
    after = [(channel, pixel) for pixel in range(4) for channel in (2, 1, 0)]

    def place(i):
        return left + i * cell + i // 4 * 14

    for line, order in enumerate((before, after)):
        y = 30 + line * row
        for i, (channel, pixel) in enumerate(order):
            cls, letter = CHANNELS[channel]
            s.rect(place(i), y, cell - 3, 34, cls, f"{letter}{pixel}", rx=2)
        for word in range(3):
            if not line:
                s.text(place(4 * word) + 2 * cell, y - 10, "abc"[word], "mono muted")
        name = (tr("before", "之前"), tr("after", "之后"))[line]
        s.text_to(left - 12, y + 22, name, "muted")
    crossing = []
    for i, one in enumerate(before):
        j = after.index(one)
        if i != j:
            crosses = i // 4 != j // 4
            crossing.append(crosses)
            middle = (cell - 3) / 2
            s.arrow(
                place(i) + middle, 66, place(j) + middle, 28 + row, "accent" if crosses else "muted"
            )
    alt = tr(
        f"Twelve bytes in three words a, b, c: B0 G0 R0 B1, G1 R1 B2 G2, R2 B3 G3 R3. Below, the order after the swap: R0 G0 B0 R1, G1 B1 R2 G2, B2 R3 G3 B3. {sum(crossing)} of the bytes go to another word.",
        f"十二个字节在三个字 a、b、c 里：B0 G0 R0 B1，G1 R1 B2 G2，R2 B3 G3 R3。下面是交换后的次序：R0 G0 B0 R1，G1 B1 R2 G2，B2 R3 G3 B3。其中 {sum(crossing)} 个字节换到了别的字里。",
    )
    caption = tr(
        f"Four pixels are three words. Most bytes stay in their word; {sum(crossing)} cross into another one.",
        f"四个像素正好是三个字。多数字节留在原来的字里，{sum(crossing)} 个要换到别的字里。",
    )
    return figure(s, alt=alt, caption=caption)
