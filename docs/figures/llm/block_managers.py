"""Figures of the chapter on block managers: a pool of blocks over time, from the recorded run, hash chains, and how block tables change."""

from cudatut.site import references
from cudatut.site.drawing import Grid, Lanes, Svg, figure, hue, legend, tr

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


def changes() -> str:
    """What becomes of block tables by append, fork, copy-on-write and swap: the numbers of physical blocks before and after."""
    cell, high, left, top = 54, 42, 190, 40
    rows = (
        (tr("append: block 1 is full", "追加：块 1 已满"), (("A", "6 1"),), (("A", "6 1 *4"),)),
        (tr("fork A, for B", "A 分叉出 B"), (("A", "6 1"),), (("A", "6 1"), ("B", "*6 *1"))),
        (
            tr("copy-on-write: B writes", "写时复制：B 要写入"),
            (("A", "6 1"), ("B", "6 1")),
            (("A", "6 1"), ("B", "6 *4")),
        ),
        (tr("swap out A", "换出 A"), (("A", "6 1"),), (("A", "*c2 *c0"),)),
        (tr("swap in A", "换入 A"), (("A", "c2 c0"),), (("A", "*5 *3"),)),
    )
    s = Svg(left + 9 * cell + 10, top + sum(len(after) for *_, after in rows) * high + 30)
    s.text_from(left, 22, tr("before", "之前"), "muted")
    s.text_from(left + 5 * cell, 22, tr("after", "之后"), "muted")
    at = 0
    for name, before, after in rows:
        for x, tables in ((0, before), (5, after)):
            cells = Grid(s, left, top, cell, high, gap=(3, 12), size=13)
            for row, (owner, blocks) in enumerate(tables, at):
                cells.note(row, x, owner, away=-2)
                for column, block in enumerate(blocks.split()):
                    kind = "c3" if block[0] == "*" else "c1"
                    cells.box(row, x + 0.5 + column, kind, block.lstrip("*"))
        s.text_from(4, top + at * high + 20, name)
        s.arrow(left + 3 * cell, top + at * high + 15, left + 4.6 * cell, top + at * high + 15)
        at += len(after)
    legend(s, 4, top + at * high + 2, [("c3", tr("changed entry", "变了的项"))], step=200, high=18)
    alt = tr(
        "Block tables before and after. Append: A's table 6, 1 becomes 6, 1, 4. Fork: B gets a table 6, 1 as well. "
        "Copy-on-write: B's table becomes 6, 4, and block 1 is copied to block 4. Swap out: A's table names blocks 2 and 0 of "
        "the CPU's memory. Swap in: it names blocks 5 and 3 of the GPU.",
        "块表变化前后。追加：A 的表由 6、1 变为 6、1、4。分叉：B 也得到表 6、1。写时复制：B 的表变为 6、4，块 1 的内容复制到块 4。"
        "换出：A 的表记录 CPU 内存里的块 2 和块 0。换入：A 的表记录 GPU 上的块 5 和块 3。",
    )
    caption = tr(
        "Tables of blocks. cN is a block in the memory of the CPU. After a copy-on-write or a swap the contents have to be copied.",
        "块表。cN 表示 CPU 内存里的块。写时复制、换出与换入之后，还要复制块的内容。",
    )
    return figure(s, alt=alt, caption=caption)
