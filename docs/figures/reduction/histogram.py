"""Drawings of counting: how a count is lost, where the counters lie, and which banks the counters of a warp hit."""

import random
from collections import Counter

from cudatut.site.drawing import BANKS, Banks, Grid, Svg, figure, tr

BINS = 256


def lost(start: int = 7) -> str:
    """Two threads that load, add and store one counter without an atomic, and with one."""
    s = Svg(700, 232)
    orders = (
        # the statement, and its steps in time: L load, A add, S store, each with its thread
        ("counts[v] += 1", ["L0", "L1", "A0", "A1", "S0", "S1"]),
        ("atomicAdd(counts + v, 1)", ["L0", "A0", "S0", "L1", "A1", "S1"]),
    )
    names = {"L": tr("load", "读"), "A": "+ 1 =", "S": tr("store", "写")}
    results = []
    for panel, (title, order) in enumerate(orders):
        top = 14 + panel * 116
        s.text_from(8, top + 8, title, "mono")
        lanes = Grid(s, 150, top + 22, 76, 44, gap=(6, 10), rx=4)
        for thread in (0, 1):
            lanes.name(thread, tr(f"thread {thread}", f"线程 {thread}"))
        counter, registers = start, [0, 0]
        for time, step in enumerate(order):
            what, thread = step[0], int(step[1])
            if what == "L":
                registers[thread] = counter
            elif what == "A":
                registers[thread] += 1
            else:
                counter = registers[thread]
            stale = what == "S" and panel == 0 and thread == 1
            cls = "c2" if stale else ("c1", "c3")[thread]
            lanes.box(thread, time, cls, f"{names[what]} {registers[thread]}")
        right = "good" if counter == start + 2 else "warn"
        s.text(652, top + 66, counter, f"bold {right}", size=18)
        results.append(counter)
    alt = tr(
        f"Two threads count the same value; the counter holds {start}. Without an atomic both load {start}, both store {start + 1}: "
        f"the counter ends at {results[0]}. With an atomic each load, addition and store is one step: it ends at {results[1]}.",
        f"两个线程给同一个值计数，计数器原为 {start}。不用原子操作，两个线程都读到 {start}，都写回 {start + 1}，结果是 {results[0]}；用原子操作，读、加、写是不可分的一步，结果是 {results[1]}。",
    )
    caption = tr(
        f"Time runs to the right. Both threads add 1 to a counter of {start}; it ends at {results[0]} above and at {results[1]} below.",
        f"时间从左到右。两个线程各给值为 {start} 的计数器加 1：上面得到 {results[0]}，下面得到 {results[1]}。",
    )
    return figure(s, alt=alt, caption=caption)


def places(blocks: int = 3, lanes: int = 6, bins: int = 4) -> str:
    """Where the counters lie: one set in L2, one per block, one per lane of each block. Drawn with few of everything."""
    width, gap, cell = 700, 14, 15
    s = Svg(width, 214)
    panel = (width - 16 - 2 * gap) / 3
    block_width = (panel - (blocks - 1) * 8) / blocks
    for p, title in enumerate(("global", "shared", "private")):
        x0 = 8 + p * (panel + gap)
        s.text_from(x0, 18, title, "bold")
        for b in range(blocks):
            x, middle = x0 + b * (block_width + 8), x0 + b * (block_width + 8) + block_width / 2
            s.rect(x, 30, block_width, 100, "c0")
            s.text(middle, 46, tr(f"block {b}", f"线程块 {b}"), "muted", size=12)
            sets = (0, 1, min(lanes, int((block_width - 6) // 8)))[p]
            wide = 1 + (cell if sets == 1 else 7)
            counters = Grid(s, middle - sets * wide / 2, 56, wide, cell + 1, gap=1, rx=1)
            counters.fill(bins, sets, lambda value, _: f"c{1 + value % 4}")
            s.arrow(middle, 132, middle, 158, "warn" if p == 0 else "muted")
        s.rect(x0, 160, panel, 46, "hollow").text_from(x0 + 8, 188, "L2", "muted")
        totals = Grid(s, x0 + panel / 2 - bins * 9, 174, 18, cell + 5, gap=2, rx=1)
        totals.row(0, [f"c{1 + value % 4}" for value in range(bins)])
    alt = tr(
        "Three panels, each with blocks above and the L2 cache below. Global: the blocks hold no counters, every byte sends an atomic "
        "to the counters in L2. Shared: each block has one set of counters. Private: each block has one set for every lane. "
        "The last two add their sets to those in L2 once, at the end.",
        "三幅图，上面是线程块，下面是 L2。global：线程块里没有计数器，每个字节都向 L2 里的计数器发一次原子操作。shared：每个线程块有一套计数器。"
        "private：每个线程块里每个 lane 有一套。后两种只在最后把各套计数器加到 L2 里一次。",
    )
    caption = tr(
        f"A color is a value, of which {bins} are drawn. The arrows carry one atomic per byte on the left, and one per value and block in the other two.",
        f"一种颜色是一个值，只画 {bins} 个。左图的箭头表示每个字节一次原子操作；另外两图里，每个线程块对每个值才做一次。",
    )
    return figure(s, alt=alt, caption=caption)


def warp(seed: int = 2) -> str:
    """The counters that a warp with 32 random values hits: in one shared set, and in a set per lane."""
    generator = random.Random(seed)
    values = [generator.randrange(BINS) for _ in range(BANKS)]
    lanes_of = Counter(values)
    words = Counter(value % BANKS for value in lanes_of)
    lanes = Counter(value % BANKS for value in values)
    most_words, most_lanes = max(words.values()), max(lanes.values())
    left, rows, high = 58, BINS // BANKS, 24
    s = Svg(left + BANKS * 20 + 6, 46 + rows * high + 96)
    title = tr("one set per block: counter v is word v", "每个线程块一套：v 的计数器是 v 号字")
    s.text_from(4, 18, title, "bold")

    def kind(row: int, bank: int) -> str | tuple[str, int]:
        hit = lanes_of.get(BANKS * row + bank)
        return ("c2" if lanes[bank] > 1 else "c1", hit) if hit else "c0"

    Banks(s, left, 46, rows, high).fill(rows, BANKS, kind)
    y = 46 + rows * high + 24
    title = tr(
        "one set per lane: counter (v, lane) is word 32 v + lane",
        "每个 lane 一套：(v, lane) 的计数器是 32 v + lane 号字",
    )
    s.text_from(4, y, title, "bold").text_from(4, y + 54, "lane", "muted", 12)
    own = Grid(s, left, y + 14, 20, high, gap=(2, 3))
    own.row(0, [("c1", 1)] * BANKS)
    own.heads({lane: lane for lane in range(0, BANKS, 4)}, size=12, up=-40)  # below them
    alt = tr(
        f"256 counters in rows of 32, a column is a bank. A warp's 32 random values hit {len(lanes_of)} counters; the most crowded bank "
        f"has {most_words} of them, wanted by {most_lanes} lanes. With a set per lane, each bank is wanted by one lane.",
        f"256 个计数器，每行 32 个，一列是一个存储体。一个线程束的 32 个随机值命中 {len(lanes_of)} 个计数器；最忙的存储体里有 {most_words} 个，{most_lanes} 个 lane 要用。每个 lane 一套时，每个存储体只有一个 lane 要用。",
    )
    caption = tr(
        f"32 random bytes, one per lane; a number says how many lanes want the counter. The fullest bank holds {most_words} different "
        f"counters, for {most_lanes} lanes. Below, every bank has one lane, whatever the bytes are.",
        f"32 个随机字节，每个 lane 一个；格子里的数是要用这个计数器的 lane 数。最忙的存储体有 {most_words} 个不同的计数器、{most_lanes} 个 lane。下图里不管字节是什么，每个存储体都只有一个 lane 访问。",
    )
    return figure(s, alt=alt, caption=caption)
