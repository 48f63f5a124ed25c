"""Figures of the chapter on decoding: what a step computes and reads, what a block has, and 20 bytes of weights."""

from cudatut.site.drawing import Grid, Lanes, Svg, figure, legend, tr


def cache(prompt: int = 3, tokens: int = 7) -> str:
    """A row for each step, a column for each token: computed in this step, or read from the cache."""
    cell, left, top = 46, 150, 40
    s = Svg(left + tokens * cell + 16, top + (tokens - prompt + 1) * 40 + 36)
    cells = Grid(s, left, top, cell, 40, gap=(4, 8), size=13).heads(range(tokens), size=14, up=14)
    for step in range(tokens - prompt + 1):
        old, new = (prompt + step - 1, 1) if step else (0, prompt)
        name = tr(f"step {step}", f"第 {step} 步") if step else tr("prefill", "预填充")
        s.text_from(4, top + step * 40 + 22, name)
        cells.row(step, [("c1", "K V")] * old + [("c3", "K V")] * new)
    entries = (
        ("c3", tr("computed and kept", "算出并保存")),
        ("c1", tr("read from the cache", "从缓存读取")),
    )
    legend(s, 4, top + (tokens - prompt + 1) * 40 + 7, entries, step=192, wide=18, high=18)
    alt = tr(
        f"The first pass computes keys and values of {prompt} tokens. Each of the {tokens - prompt} steps after it computes "
        "those of one token and reads those of all tokens before it.",
        f"第一遍算出 {prompt} 个词元的键和值；之后的 {tokens - prompt} 步，每步只算一个词元的键和值，并读取之前所有词元的键和值。",
    )
    caption = tr(
        "Keys and values of one layer. A step computes one column and reads all columns before it.",
        "某一层的键和值。一步只算一列，并读取前面的所有列。",
    )
    return figure(s, alt=alt, caption=caption)


def blocks(kv_heads: int = 2, group: int = 4, keys: int = 1300, split: int = 512) -> str:
    """The thread blocks of one sequence, (x, y) as in the grid: a KV head and a part of the keys each."""
    parts = -(-keys // split)
    left, top, row = 170, 40, 62
    scale = 500 / keys
    s = Svg(left + 520, top + kv_heads * row + 34)
    s.text_from(4, 24, tr("query heads", "查询头"), "muted")
    s.text_from(left, 24, tr(f"keys 0 to {keys - 1}", f"键 0 到 {keys - 1}"), "muted")
    heads = Grid(s, 4, top + 8, 34, row, gap=(4, row - 30))
    lanes = Lanes(s, left, top, scale, row, gap=(4, row - 46), rx=4)
    for h in range(kv_heads):
        heads.row(h, [(f"c{2 + h}", h * group + i) for i in range(group)])
        for p in range(parts):
            name = tr(f"block ({h}, {p})", f"线程块 ({h}, {p})")
            lanes.bar(h, p * split, min(keys, (p + 1) * split), f"c{2 + h}", name)
    for p in range(parts):
        s.text_from(lanes.when(p * split), top + kv_heads * row + 16, p * split, "muted", 13)
    alt = tr(
        f"One sequence of {keys} keys with {kv_heads} KV heads, each shared by {group} query heads: {parts} parts of up to "
        f"{split} keys and {kv_heads} KV heads make {parts * kv_heads} blocks. A block reads its keys once, for {group} query heads.",
        f"一个有 {keys} 个键的序列，{kv_heads} 个 KV 头，每个由 {group} 个查询头共用：{parts} 段（每段最多 {split} 个键）乘以 {kv_heads} 个 KV 头，"
        f"共 {parts * kv_heads} 个线程块。每个线程块读一遍自己的键，供 {group} 个查询头使用。",
    )
    caption = tr(
        f"A block for each query head would make {kv_heads * group} blocks, and read every key {group} times. Here "
        f"{parts * kv_heads} blocks read every key once, and a longer sequence makes more blocks.",
        f"每个查询头一个线程块，就有 {kv_heads * group} 个线程块，每个键要读 {group} 遍。这里 {parts * kv_heads} 个线程块把每个键只读一遍；序列越长，线程块越多。",
    )
    return figure(s, alt=alt, caption=caption)


def q4_1(weights: int = 32, lane: int = 1) -> str:
    """The 20 bytes of a block of Q4_1, and the two words of numbers that a lane takes."""
    half, top, byte = weights // 2, 44, 34
    s = Svg(690, top + 140)
    s.rect(8, top, 52, 44, "c4", "d\nfp16", size=13).rect(64, top, 52, 44, "c4", "m\nfp16", size=13)
    cells = Grid(s, 120, top, byte, 47, rx=4, size=13)
    cells.row(0, [("c3" if j // 4 == lane else "c1", f"{half + j}\n{j}") for j in range(half)])
    s.text_from(8, 24, tr("4 bytes", "4 字节"), "muted")
    numbers = tr(f"{half} bytes, two numbers each", f"{half} 字节，每字节两个数")
    s.text_from(cells.x, 24, numbers, "muted")
    center = cells.corner(0, lane * 4 + 2)[0] - 2
    s.arrow(center, top + 48, center, top + 86)
    low = ", ".join(str(4 * lane + i) for i in range(4))
    high = ", ".join(str(half + 4 * lane + i) for i in range(4))
    words = tr(
        f"lane {lane}: word & 0x0f0f0f0f is q {low}", f"lane {lane}：word & 0x0f0f0f0f 得到 q {low}"
    )
    s.text_from(center - 60, top + 108, words, "mono", 13)
    words = tr(f"word >> 4 & 0x0f0f0f0f is q {high}", f"word >> 4 & 0x0f0f0f0f 得到 q {high}")
    s.text_from(center - 60, top + 130, words, "mono", 13)
    alt = tr(
        f"A block of Q4_1: two bytes of scale d, two bytes of minimum m, then {half} bytes. Byte j holds number j in its lower "
        f"half and number j + {half} in its upper half. Lane {lane} of four takes bytes {4 * lane} to {4 * lane + 3}: numbers "
        f"{low} and {high}.",
        f"Q4_1 的一个块：2 字节的缩放系数 d，2 字节的最小值 m，再加 {half} 字节。第 j 个字节的低 4 位是第 j 个数，高 4 位是第 j + {half} 个数。"
        f"四个 lane 中的 lane {lane} 取第 {4 * lane} 到 {4 * lane + 3} 个字节：第 {low} 和 {high} 个数。",
    )
    caption = tr(
        f"{weights} weights in {4 + half} bytes: w = d q + m. One word gives a lane eight numbers by two masks and a shift.",
        f"{weights} 个权重占 {4 + half} 字节：w = d q + m。一个字经过两次掩码和一次移位，就得到一个 lane 的八个数。",
    )
    return figure(s, alt=alt, caption=caption)
