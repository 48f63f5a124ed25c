"""Drawings of the chapter on CUTLASS's convolution: how tiles fill turns on all SMs, and what a block does that makes one tile, or many."""

from cudatut.site.drawing import Lanes, Svg, figure, legend, tr

TILES = ((128, 128), (64, 256), (128, 256))


def turns(pixels: int = 33_800, filters: int = 256, sms: int = 132) -> str:
    """Turns of all SMs for one layer, by tile; widths go with the area of a tile, heights with the SMs that have one."""
    left, high, gap, wide = 150, 52, 30, 150
    s = Svg(left + 3 * wide + 24, 34 + len(TILES) * (high + gap))
    told_en, told_zh = [], []
    for k, (rows, columns) in enumerate(TILES):
        count = -(-pixels // rows) * -(-filters // columns)
        every = wide * rows * columns / (128 * 256)
        y = 20 + k * (high + gap)
        s.text_to(left - 14, y + high / 2 + 5, f"{rows} x {columns}", "muted")
        whole, rest = divmod(count, sms)
        for t in range(whole + bool(rest)):
            share = 1.0 if t < whole else rest / sms
            s.rect(left + t * every + 2, y, every - 4, high, "hollow dash", rx=2)
            tall = max(3.0, share * high)
            s.rect(left + t * every + 2, y + high - tall, every - 4, tall, "c1", rx=2)
        last = rest or sms
        s.text_from(left, y + high + 18, tr(f"{count} tiles, {whole + bool(rest)} turns; {last} in the last", f"{count} 个分块，{whole + bool(rest)} 轮；最后一轮 {last} 个"), "muted", size=12)  # fmt: skip
        told_en.append(f"{rows} x {columns}: {count} tiles in {whole + bool(rest)} turns, {last} of them in the last")  # fmt: skip
        told_zh.append(f"{rows} × {columns}：{count} 个分块，{whole + bool(rest)} 轮，最后一轮 {last} 个")  # fmt: skip
    alt = tr(
        f"Three rows of bars, one for each tile. {'; '.join(told_en)}.",
        f"三行条形，每种分块一行。{'；'.join(told_zh)}。",
    )
    caption = tr(
        f"{pixels:,} pixels and {filters} filters on {sms} SMs. A bar is a turn: as wide as a tile is large, and filled as far as SMs have a tile.",
        f"{pixels:,} 个像素、{filters} 个滤波器，{sms} 个 SM。每个条形是一轮：宽度与分块的面积成正比，填充的部分表示有分块可算的 SM。",
    )
    return figure(s, alt=alt, caption=caption)


def blocks(tiles: int = 3, begin: int = 30, multiply: int = 110, store: int = 40, first: int = 30) -> str:  # fmt: skip
    """What an SM does over time: with a block for each tile, and with a block that stays."""
    left, row = 168, 32
    s = Svg(left + tiles * (begin + multiply + store) + 20, 4 * row + 96)
    lanes = Lanes(s, left, 16, 1, row, gap=(0, 8), rx=3)
    names = (
        (tr("a block for each tile:\nfetches", "每个分块一个线程块：\n读取"), 0),
        (tr("multiplies, stores", "相乘、存储"), 1),
        (tr("a block that stays:\nfetches", "线程块一直驻留：\n读取"), 2.6),
        (tr("multiplies, stores", "相乘、存储"), 3.6),
    )
    for name, lane in names:
        lanes.named(lane, 4, name, "muted")
    at = 0
    for t in range(tiles):
        lanes.bar(0, at, at + first + multiply, "c3", f"{t}")
        lanes.bar(1, at + first, at + first + multiply, "c1", f"{t}")
        lanes.bar(1, at + first + multiply, at + first + multiply + store, "c2", "")
        at += first + multiply + store
    one = at
    at = first
    for t in range(tiles):
        lanes.bar(2.6, at - first, at + multiply + (store - first) * (t < tiles - 1), "c3", f"{t}")
        lanes.bar(3.6, at, at + multiply, "c1", f"{t}")
        lanes.bar(3.6, at + multiply, at + multiply + store, "c2", "")
        at += multiply + store
    legend(
        s,
        left,
        4 * row + 72,
        [
            ("c3", tr("the TMA fetches", "TMA 读取")),
            ("c1", tr("multiplies", "相乘")),
            ("c2", tr("stores", "存储")),
        ],
    )
    alt = tr(
        f"Two pairs of rows of bars for {tiles} tiles. Above, each tile is fetched, multiplied and stored before the next one begins. Below, fetching goes on while results are stored, and {tiles} tiles end earlier.",
        f"两组条形，各 {tiles} 个分块。上面：每个分块读取、相乘、存储完，才开始下一个。下面：存储结果时继续读取，{tiles} 个分块结束得更早。",
    )
    caption = tr(
        f"One SM and {tiles} tiles. A new block has to fetch before it can multiply; a block that stays has fetched already. The lengths are drawn, not measured.",
        f"一个 SM、{tiles} 个分块。新的线程块要先读取才能相乘；一直驻留的线程块此时已经读好。长度只是示意，并非实测。",
    )
    assert one > at
    return figure(s, alt=alt, caption=caption)
