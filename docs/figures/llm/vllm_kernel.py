"""Figures of the chapter on vLLM's paged attention kernel: its thread blocks, and who loads what of a block of keys and of values."""

from cudatut.site.drawing import Grid, Lanes, Svg, figure, legend, tr


def blocks(kv_heads: int = 2, group: int = 2, keys: int = 1300, part: int = 512) -> str:
    """The thread blocks of one sequence: a query head and a partition each."""
    parts, left, top, row = -(-keys // part), 150, 40, 34
    heads = kv_heads * group
    s = Svg(left + 520, top + heads * row + 30)
    s.text_from(4, 24, tr("query head", "查询头"), "muted")
    s.text_from(left, 24, tr(f"keys 0 to {keys - 1}", f"键 0 到 {keys - 1}"), "muted")
    lanes = Lanes(s, left, top, 500 / keys, row, gap=(4, 6), rx=4, size=13)
    for h in range(heads):
        head = tr(f"{h} (KV head {h // group})", f"{h}（KV 头 {h // group}）")
        lanes.named(h, 4, head)
        for p in range(parts):
            name = tr(f"block ({h}, 0, {p})", f"线程块 ({h}, 0, {p})")
            lanes.bar(h, p * part, min(keys, (p + 1) * part), f"c{2 + h // group}", name)
    for p in range(parts):
        s.text_from(lanes.when(p * part), top + heads * row + 16, p * part, "muted", 13)
    alt = tr(
        f"One sequence of {keys} keys, {heads} query heads, {kv_heads} KV heads: each query head has {parts} thread blocks, one "
        f"for each partition of {part} keys. The {group} query heads that share a KV head read the same keys, each in thread "
        "blocks of its own.",
        f"一个有 {keys} 个键的序列，{heads} 个查询头，{kv_heads} 个 KV 头：每个查询头有 {parts} 个线程块，每 {part} 个键的一段各一个。"
        f"共用一个 KV 头的 {group} 个查询头读同样的键，但各有自己的线程块。",
    )
    caption = tr(
        "The grid of vLLM's second kernel: (query head, sequence, partition). Equal colors: the same keys are read.",
        "vLLM 第二个 kernel 的网格：（查询头，序列，段）。颜色相同，表示读的是同样的键。",
    )
    return figure(s, alt=alt, caption=caption)


def chunks(keys: int = 4, per_key: int = 4) -> str:
    """Chunks of 16 bytes in the order in which they lie in memory, in rows and in chunks; those of one load are marked."""
    cell, left, top = 35, 90, 44
    s = Svg(left + keys * per_key * cell + 8, top + 150)
    cells = Grid(s, left, top, cell, 62, gap=(3, 24), size=12)
    s.text_from(left, 24, tr("addresses grow to the right", "地址从左到右递增"), "muted")
    rows = [(k, c) for k in range(keys) for c in range(per_key)]
    turned = [(k, c) for c in range(per_key) for k in range(keys)]
    for row, (name, order) in enumerate(
        ((tr("in rows", "按行"), rows), (tr("in chunks", "按小段"), turned))
    ):
        cells.named(row, 4, name)
        cells.row(row, [("c3" if c == 0 else f"c{k % 2}", f"k{k}\n{c}") for k, c in order])
    entries = (("c3", tr("first load of the warp: chunk 0 of each key", "线程束的第一次读取：每个键的第 0 小段")),)  # fmt: skip
    legend(s, left, top + 124, entries, step=300, high=18)
    alt = tr(
        f"{keys} keys of {per_key} chunks of 16 bytes. In rows, chunk 0 of the keys lies {per_key} chunks apart. In chunks, "
        "chunk 0 of all keys comes first, side by side, then chunk 1 of all keys.",
        f"{keys} 个键，每个键有 {per_key} 个 16 字节的小段。按行存放时，各个键的第 0 小段彼此相隔 {per_key} 个小段；按小段存放时，"
        "先是所有键的第 0 小段，紧挨在一起，再是所有键的第 1 小段。",
    )
    caption = tr(
        "kN is key N, the number below it a chunk of 8 elements of bf16. With one thread for each key, the lanes of a warp "
        "load the same chunk of neighboring keys at the same time.",
        "kN 是第 N 个键，下面的数字是小段的编号，一个小段有 8 个 bf16 元素。一个线程负责一个键时，线程束的各个 lane 同时读取相邻各键的同一小段。",
    )
    return figure(s, alt=alt, caption=caption)


def group(threads: int = 2, d: int = 32, x: int = 8) -> str:
    """The elements of a key, and which thread of a group loads them."""
    vec, left, top = x // threads, 90, 44
    cell = 560 / d
    s = Svg(left + 570, top + 92)
    cells = Grid(s, left, top, cell * vec, 46, size=13)
    places = range(d // vec)
    cells.row(
        0,
        [(f"c{1 + 2 * (i % threads)}", f"{i * vec}–{i * vec + vec - 1}") for i in places],
    )
    cells.named(0, 4, tr("elements", "元素"))
    names = {i * threads: tr(f"load {i}", f"第 {i} 次读取") for i in range(d // vec // threads)}
    cells.heads(names, size=13)
    entries = [
        (f"c{1 + 2 * t}", tr(f"thread {t} of the group", f"组内第 {t} 个线程"))
        for t in range(threads)
    ]
    legend(s, left, top + 62, entries, step=220, high=18)
    alt = tr(
        f"A key of {d} elements, for a group of {threads} threads: in each load the group takes {x} elements, 16 bytes, and each "
        f"thread {vec} of them.",
        f"一个有 {d} 个元素的键，由 {threads} 个线程组成的线程组处理：每次读取全组取 {x} 个元素，即 16 字节，每个线程取其中 {vec} 个。",
    )
    caption = tr(
        f"A key of {d} elements and its group of {threads} threads. Each thread adds up its own products, and a shuffle adds up "
        "those of the group.",
        f"一个有 {d} 个元素的键，以及处理它的 {threads} 个线程。每个线程累加自己的乘积，再用洗牌把全组的结果加起来。",
    )
    return figure(s, alt=alt, caption=caption)


def columns(d: int = 128, block: int = 16, x: int = 8) -> str:
    """Which lane of a warp loads which tokens of which element of the values of a block."""
    per_row = block // x
    rows = 32 // per_row  # of a load
    loads, wide, left, top = d // rows, 84, 110, 62
    step = wide * per_row + 120
    s = Svg(left + 2 * step - 24, top + 5 * 34 + 6)
    for load in range(2):
        cells = Grid(s, left + load * step, top, wide, 34, gap=(4, 6), size=13)
        s.text_from(cells.x, 20, tr(f"load {load}", f"第 {load} 次读取"), "bold")
        cells.heads([tr(f"tokens {x * i}–{x * i + x - 1}", f"词元 {x * i}–{x * i + x - 1}") for i in range(per_row)], size=12)  # fmt: skip
        for at, row in enumerate((0, 1, 2, None, rows - 1)):
            if row is None:
                cells.named(at, cells.x + wide - 6, "…")
                continue
            cells.name(at, tr(f"element {load * rows + row}", f"元素 {load * rows + row}"), size=13)
            lanes = [row * per_row + i for i in range(per_row)]
            cells.row(at, [("c3" if n == 0 else f"c{n % 2}", f"lane {n}") for n in lanes])
    held = [i * rows for i in range(loads)]
    named = f"{held[0]}, {held[1]}, …, {held[-1]}"
    alt = tr(
        f"The values of a block of {block} tokens, in columns: a row for each of the {d} elements. A load of a warp takes {rows} "
        f"rows, {per_row} lanes to a row, {x} tokens to a lane. Lane 0 gets elements {named}.",
        f"一个块中 {block} 个词元的值，按列存放：{d} 个元素各占一行。线程束一次读取 {rows} 行，每行 {per_row} 个 lane，每个 lane {x} 个词元。"
        f"lane 0 得到元素 {named}。",
    )
    caption = tr(
        f"Values in columns: the {block} tokens of an element lie side by side. Over its {loads} loads, lane 0 adds up elements "
        f"{named}, for the first {x} tokens of the block.",
        f"按列存放的值：同一元素的 {block} 个词元紧挨在一起。在 {loads} 次读取中，lane 0 为块的前 {x} 个词元累加元素 {named}。",
    )
    return figure(s, alt=alt, caption=caption)
