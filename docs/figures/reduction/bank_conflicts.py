"""Drawings of banks: which words a warp touches, how many passes that takes, padding, and the phases of wide loads."""

from collections import Counter

from figures.reduction.naive import draw_tree, height, rounds, width

from cudatut.site.drawing import BANKS, Banks, Grid, Svg, figure, hue, legend, tr


def passes(words: list[int], banks: int = BANKS) -> int:
    """Passes of one 4-byte access: the most different words that fall into one bank."""
    return max(Counter(word % banks for word in set(words)).values())


def strided(block: int = 256, step: int = 4, warp: int = 0) -> str:
    """The words of a block's shared memory, and which of them the lanes of one warp store to in the round `step`."""
    pairs = dict(rounds("interleaved", block))[step]
    words = {to: t % 32 for t, to, _ in pairs if t // 32 == warp}
    rows, crowd = block // BANKS, Counter(word % BANKS for word in words)

    def kind(row: int, bank: int) -> str | tuple[str, object]:
        lane = words.get(row * BANKS + bank)
        return "c0" if lane is None else ("c2" if crowd[bank] > 1 else "c1", lane)

    s = Svg(58 + BANKS * 20 + 6, 30 + rows * 26)
    Banks(s, 58, 26, rows).fill(rows, BANKS, kind)
    ways = passes(list(words))
    used = len({word % BANKS for word in words})
    alt = tr(
        f"{block} words of shared memory in rows of {BANKS}. In the round with distance {step} the {len(words)} lanes at "
        f"work of warp {warp} store to words {2 * step} apart: {used} banks, {ways} words in each.",
        f"{block} 个共享内存字，每行 {BANKS} 个。距离为 {step} 的一轮里，线程束 {warp} 有 {len(words)} 个 lane 工作，写的字相隔 {2 * step}：落在 {used} 个存储体里，每个存储体有 {ways} 个字。",
    )
    caption = tr(
        f"Distance {step}: lane numbers of warp {warp} at the words that they store to. A column is a bank: {used} banks "
        f"for {len(words)} lanes, so {ways} passes.",
        f"距离 {step}：线程束 {warp} 的 lane 号标在各 lane 写入的字上。每一列是一个存储体：{len(words)} 个 lane 挤在 {used} 个存储体里，要 {ways} 趟。",
    )
    return figure(s, alt=alt, caption=caption)


def conflicts(block: int = 256) -> str:
    """Extra wavefronts of a block's stores in each round, for strided and sequential addressing."""
    kinds = (
        ("interleaved", tr("strided", "跨步"), "c2"),
        ("sequential", tr("sequential", "连续"), "c1"),
    )
    table: dict[str, list[int]] = {}
    for mapping, _, _ in kinds:
        table[mapping] = []
        for _, pairs in rounds(mapping, block):
            by_warp: dict[int, list[int]] = {}
            for t, to, _ in pairs:
                by_warp.setdefault(t // 32, []).append(to)
            table[mapping].append(sum(passes(words) - 1 for words in by_warp.values()))
    count, slot, left, floor = len(table["interleaved"]), 66, 96, 214
    unit = 160 / max(*table["interleaved"], 1)
    s = Svg(left + count * slot + 8, floor + 58)
    for r in range(count):
        x = left + r * slot
        for k, (mapping, _, cls) in enumerate(kinds):
            value = table[mapping][r]
            s.rect(x + 6 + 26 * k, floor - unit * value, 24, unit * value, cls, rx=0)
            s.text(x + 18 + 26 * k, floor - unit * value - 6, value)
        s.text(x + slot / 2, floor + 20, r + 1, "muted")
    s.line(left, floor, left + count * slot, floor, "axis")
    s.text(4, floor + 20, tr("round", "轮"), "muted", "start")
    entries = [(cls, f"{name}: {sum(table[mapping])}") for mapping, name, cls in kinds]
    legend(s, left, floor + 34, entries, step=170, wide=14)
    shown = " + ".join(map(str, table["interleaved"]))
    alt = tr(
        f"Extra wavefronts of the stores of one block of {block}, by round. Strided: {shown} = "
        f"{sum(table['interleaved'])}. Sequential: {sum(table['sequential'])}.",
        f"一个 {block} 线程的线程块，各轮写入多出的趟数。跨步：{shown} = {sum(table['interleaved'])}；连续：{sum(table['sequential'])}。",
    )
    caption = tr(
        f"Passes beyond the first, all stores of a block of {block}: {shown} = {sum(table['interleaved'])}. "
        "They peak in the middle: later rounds have too few lanes for worse.",
        f"{block} 线程的线程块，各轮写入多出的趟数（每次写入的第一趟不计）：{shown} = {sum(table['interleaved'])}。中间几轮最高；再往后，工作的 lane 太少，冲突不会更多。",
    )
    return figure(s, alt=alt, caption=caption)


def tree(block: int = 16, warp: int = 4) -> str:
    """The tree of rung 3; a color is a warp (drawn with `warp` lanes)."""
    s = Svg(max(width(block), 460), 30 + height("sequential", block))
    draw_tree(s, 26, "sequential", block, warp)
    distances = ", ".join(str(d) for d, _ in rounds("sequential", block))
    alt = tr(
        f"A tree over {block} words with distances {distances}: in each round threads 0, 1, 2 and so on add to words 0, 1, 2 and so on.",
        f"对 {block} 个字按树形求和，距离依次为 {distances}：每一轮都是线程 0、1、2……写第 0、1、2……个字。",
    )
    caption = tr(
        f"Sequential addressing: distances {distances}. Thread t writes word t, so neighboring lanes write neighboring words. "
        f"Warps are drawn with {warp} lanes.",
        f"连续寻址：距离依次为 {distances}。线程 t 写第 t 个字，相邻的 lane 写相邻的字。每个线程束只画 {warp} 个 lane。",
    )
    return figure(s, alt=alt, caption=caption)


def padding(size: int = 8, banks: int = 8) -> str:
    """A square tile with and without one word of padding per row; its first column is marked. Drawn with few banks."""
    cell, gap = 38, 34
    panel = (size + 1) * cell
    s = Svg(2 * panel + gap + 16, 92 + size * 34)
    taken = []
    for side, pitch in enumerate((size, size + 1)):
        x0 = 8 + side * (panel + gap)
        column = [r * pitch for r in range(size)]
        crowd = Counter(word % banks for word in column)
        taken.append(passes(column, banks))
        s.text_from(x0, 18, tr(f"pitch {pitch} words", f"行距 {pitch} 个字"), "bold")
        cells = Grid(s, x0, 30, cell, 34, gap=(3, 4), rx=3)
        for r in range(size):
            of_row = [word % banks for word in range(r * pitch, (r + 1) * pitch)]
            kinds = ["c2" if crowd[of_row[0]] > 1 else "c1", *["c0"] * (size - 1)]
            kinds += ["hollow dash muted"] * (pitch - size)
            cells.row(r, zip(kinds, of_row))
        text = tr(f"column 0: {taken[-1]} pass", f"第 0 列：{taken[-1]} 趟")
        s.text_from(x0, 54 + size * 34, text + tr("es" * (taken[-1] > 1), ""))
    alt = tr(
        f"A tile of {size} x {size} words with the bank of each word, for {banks} banks. With a pitch of {size} the first column "
        f"lies in one bank, {taken[0]} passes; with a pitch of {size + 1} in {size} banks, {taken[1]} pass.",
        f"{size} x {size} 个字的分块，标出每个字所在的存储体（共 {banks} 个）。行距 {size} 时第 0 列全在一个存储体里，{taken[0]} 趟；行距 {size + 1} 时分在 {size} 个里，{taken[1]} 趟。",
    )
    caption = tr(
        f"Numbers are banks (drawn with {banks} of them); dashed: the word of padding. Rows never conflict.",
        f"数字是存储体编号（图中共 {banks} 个）；虚线框是填充的字。按行访问不会冲突。",
    )
    return figure(s, alt=alt, caption=caption)


def phases(words: int = 4) -> str:
    """Which lanes one pass of a wide load serves: `words` words of 4 bytes per lane, neighboring lanes side by side."""
    lanes = BANKS // words
    s = Svg(78 + BANKS * 20 + 6, 34 + words * 34)
    banks = Banks(s, 78, 26, high=34, gap=(2, 6), rx=3, numbers=range(0, BANKS, words))
    for phase in range(words):
        banks.named(phase, 4, tr(f"phase {phase + 1}", f"第 {phase + 1} 趟"), "")
        for k in range(lanes):
            banks.box(phase, k * words, hue(phase), phase * lanes + k, across=words)
    alt = tr(
        f"A warp's load of {4 * words} bytes per lane takes {words} phases; each serves {lanes} lanes, which cover all {BANKS} banks once.",
        f"每个 lane 读 {4 * words} 字节时，一个线程束要走 {words} 趟；每趟 {lanes} 个 lane，恰好把 {BANKS} 个存储体各用一次。",
    )
    caption = tr(
        f"One load instruction of {4 * words} bytes per lane: {words} phases of {lanes} lanes (their numbers in the boxes), no conflict.",
        f"一条指令让每个 lane 读 {4 * words} 字节：要走 {words} 趟，每趟 {lanes} 个 lane（框中是 lane 号），没有冲突。",
    )
    return figure(s, alt=alt, caption=caption)
