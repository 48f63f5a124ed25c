"""Figures of the chapter on block managers: a pool of blocks over time, from the recorded run, and hash chains."""

from cudatut.site import references
from cudatut.site.drawing import Grid, Lanes, Svg, figure, hue, tr

EXAMPLE = "llm/block_managers"


def _owners() -> list[list[int]]:
    """For each step, who holds each block: the number of a request, 0 for nobody."""
    found = references.facts(EXAMPLE, "timeline")
    return [[int(one) for one in owners.split()] for owners in found.values()]


def pool() -> str:
    """Every block of the pool as a row, every step as a column, in the color of the request that holds it."""
    steps = _owners()
    count, left, top, width, high = len(steps[0]), 66, 30, 12, 11
    s = Svg(left + width * len(steps) + 14, top + high * count + 34)
    s.text_from(left, 18, tr("step →", "步 →"), "muted", 13)
    lanes = Lanes(s, left, top, width, high, gap=1, rx=0, size=10)
    for block in (0, count - 1):
        lanes.name(block, tr(f"block {block}", f"块 {block}"), size=12)
    for block, owners in enumerate(zip(*steps)):
        lanes.runs(block, owners, lambda owner: (hue(owner), owner) if owner else None)
    for step in range(0, len(steps), 10):
        s.text(lanes.when(step + 0.5), top + high * count + 18, step, "muted", size=12)
    most = max(count - row.count(0) for row in steps)
    requests = len({owner for row in steps for owner in row} - {0})
    alt = tr(
        f"A pool of {count} blocks over {len(steps)} steps and {requests} requests; at most {most} blocks are held. At first each request has "
        "neighboring blocks, later its blocks lie scattered between free ones.",
        f"{count} 个块、{len(steps)} 步、{requests} 个请求；最多占用 {most} 个块。起初同一个请求的块都相邻，后来散落在空闲块之间。",
    )
    caption = tr(
        "The pool in the recorded run: a row is a block, a column is a step, a color and a number are a request; empty places are free blocks.",
        "块池随时间的变化，取自本页的运行记录：一行是一个块，一列是一步，颜色和数字表示请求，空白表示空闲。",
    )
    return figure(s, alt=alt, caption=caption)


def chain(blocks: int = 3, shared: int = 2, size: int = 4) -> str:
    """Two prompts cut into blocks; each hash covers the hash before it, so equal hashes mean equal beginnings."""
    cell, left, top, row = 30, 92, 18, 112
    wide = cell * size + 36
    s = Svg(left + wide * blocks + 10, top + 2 * row)
    names = (tr("request A", "请求 A"), tr("request B", "请求 B"))
    for which, name in enumerate(names):
        y = top + which * row
        s.text_to(left - 12, y + 21, name, "bold")
        for block in range(blocks):
            same, x = block < shared, left + wide * block
            first = size * block + (10 if same or not which else 50)
            color = f"c{1 + block}" if same else f"c{4 + which}"
            Grid(s, x, y, cell, 34, gap=2, rx=4).row(0, [(color, first + i) for i in range(size)])
            label = f"h{block}" if same or not which else f"h{block}'"
            middle = x + cell * size / 2
            s.arrow(middle, y + 34, middle, y + 56).rect(middle - 24, y + 56, 48, 26, "c0", label)
            if block + 1 < blocks:
                s.arrow(middle + 26, y + 69, middle + wide - 26, y + 69)
    alt = tr(
        f"Two prompts of {blocks} blocks. The first {shared} blocks have equal tokens and equal hashes, h0 to h{shared - 1}; from there on they differ. "
        "Every hash is made of the hash before it and the tokens of its block.",
        f"两个提示各有 {blocks} 个块。前 {shared} 个块的词元相同，哈希也相同（h0 到 h{shared - 1}），之后就不同了。每个哈希由前一个哈希和本块的词元算出。",
    )
    caption = tr(
        f"Blocks of {size} tokens and their hashes. Arrows lead from what goes into a hash. Request B finds the blocks of h0 to h{shared - 1} and "
        "computes the rest.",
        f"每块 {size} 个词元，以及各块的哈希；箭头从用来算哈希的内容指向哈希。请求 B 查得到 h0 到 h{shared - 1} 的块，其余的还要计算。",
    )
    return figure(s, alt=alt, caption=caption)
