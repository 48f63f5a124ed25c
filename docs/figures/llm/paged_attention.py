"""Figures of the chapter on PagedAttention: three kinds of waste, and tables of blocks."""

from __future__ import annotations

from cudatut.site import references
from cudatut.site.svg import Svg, figure, tr


def kinds(
    requests: tuple[tuple[int, int, int], ...] = ((9, 4, 24), (6, 3, 12)), slots: int = 44
) -> str:
    """A pool in which each request has slots side by side: those with a token, still to come, reserved at first."""
    cell, top = 16, 62
    s = Svg(slots * cell + 12, top + 100)
    x, own, told = 6, [], []
    for number, (held, coming, reserved) in enumerate(requests):
        name = "AB"[number]
        s.text(
            x + reserved * cell / 2,
            24,
            tr(
                f"request {name}: at most {reserved} tokens", f"请求 {name}：最多 {reserved} 个词元"
            ),
        )
        s.line(x, 34, x + reserved * cell - 3, 34, "muted")
        for i in range(reserved):
            tint = "c3" if i < held else "c1" if i < held + coming else "c2"
            s.rect(x + i * cell, top - 16, cell - 2, 30, tint, rx=0)
        x += reserved * cell
        own.append(reserved)
        told.append((name, held, coming, reserved - held - coming))
    left = slots - sum(own)
    for i in range(left):
        s.rect(x + i * cell, top - 16, cell - 2, 30, "c0", rx=0)
    legend = (
        ("c3", tr("hold a token", "存着词元")),
        ("c1", tr("reserved: a token will come", "预留：以后会用上")),
        ("c2", tr("internal: never used", "内部：始终用不上")),
        ("c0", tr(f"external: too few for {requests[0][2]}", f"外部：不够放 {requests[0][2]} 个")),
    )
    for i, (tint, text) in enumerate(legend):
        a, b = 6 + i % 2 * 330, top + 40 + i // 2 * 30
        s.rect(a, b, 16, 18, tint, rx=0)
        s.text(a + 24, b + 14, text, "", "start")
    alt = tr(
        f"A pool of {slots} slots. "
        + " ".join(
            f"Request {name} holds {held} tokens, {coming} more will come, and {never} slots are never used."
            for name, held, coming, never in told
        )
        + f" {left} slots are free, too few for a request that may have {requests[0][2]} tokens.",
        f"池里有 {slots} 个槽位。"
        + "".join(
            f"请求 {name} 存着 {held} 个词元，还会再来 {coming} 个，另有 {never} 个槽位始终用不上。"
            for name, held, coming, never in told
        )
        + f"剩下 {left} 个空闲槽位，放不下最多 {requests[0][2]} 个词元的请求。",
    )
    caption = tr(
        "Slots side by side, as many as a request may ever need. While the requests run, nobody knows which slots are "
        "reserved and which are internal waste.",
        "槽位连续，并且按请求可能用到的最大数量划分。请求运行期间，没有人知道哪些槽位是预留，哪些是内部浪费。",
    )
    return figure(s, alt=alt, caption=caption)


def tables(
    block: int = 4,
    sequences: tuple[tuple[int, tuple[int, ...]], ...] = ((11, (6, 1, 4)), (6, (3, 0))),
    blocks: int = 8,
) -> str:
    """Tables of two sequences, and the pool that their blocks lie in. sequences: tokens, and the blocks of the table."""
    cell, left, top = 34, 330, 44
    s = Svg(left + block * cell + 150, top + blocks * 36 + 12)
    s.text(4, 24, tr("tables", "块表"), "muted", "start")
    s.text(
        left, 24, tr(f"pool: blocks of {block} slots", f"池：每块 {block} 个槽位"), "muted", "start"
    )
    owner: dict[int, tuple[int, int]] = {}
    y = top
    for number, (tokens, table) in enumerate(sequences):
        name = "AB"[number]
        s.text(
            4,
            y + 20,
            tr(f"sequence {name}, {tokens} tokens", f"序列 {name}，{tokens} 个词元"),
            "",
            "start",
        )
        for i, at in enumerate(table):
            s.rect(4 + i * 40, y + 30, 36, 30, f"c{2 + number}", at, rx=2)
            owner[at] = number, i
        y += 112
    for at in range(blocks):
        y = top + at * 36
        s.text(left - 12, y + 20, at, "muted", "end")
        number, place = owner.get(at, (None, 0))
        for slot in range(block):
            token = place * block + slot
            x = left + slot * cell
            if number is None or token >= sequences[number][0]:
                tint = "c0" if number is None else f"c{2 + number} hollow dash"
                s.rect(x, y, cell - 3, 30, tint, rx=0)
            else:
                s.rect(
                    x, y, cell - 3, 30, f"c{2 + number}", f"{'AB'[number]}{token}", rx=0, size=13
                )
    unused = [at for at in range(blocks) if at not in owner]
    alt = tr(
        " ".join(
            f"Sequence {'AB'[n]} has {tokens} tokens in the blocks {', '.join(map(str, table))} of the pool."
            for n, (tokens, table) in enumerate(sequences)
        )
        + f" Blocks {', '.join(map(str, unused))} are free.",
        "".join(
            f"序列 {'AB'[n]} 有 {tokens} 个词元，放在池里的第 {'、'.join(map(str, table))} 块。"
            for n, (tokens, table) in enumerate(sequences)
        )
        + f"第 {'、'.join(map(str, unused))} 块空闲。",
    )
    tokens, table = sequences[0]
    token = tokens - 1
    caption = tr(
        f"Token {token} of sequence A: {token} / {block} = {token // block}, and its table says block {table[token // block]}; "
        f"{token} % {block} = {token % block}. So it is in slot {table[token // block]} * {block} + {token % block} = "
        f"{table[token // block] * block + token % block}.",
        f"序列 A 的第 {token} 个词元：{token} / {block} = {token // block}，块表里这一项是 {table[token // block]}；{token} % {block} = "
        f"{token % block}。所以它在槽位 {table[token // block]} * {block} + {token % block} = {table[token // block] * block + token % block}。",
    )
    return figure(s, alt=alt, caption=caption)


def pools(cell: int = 16) -> str:
    """The pools that the simulation drew: a line for each moment, a tint for each request."""
    results = references.load("llm/paged_attention_map").results("map")
    titles = (
        tr("side by side, the next power of two", "连续存放，取 2 的幂"),
        tr(f"blocks of {cell}", f"每块 {cell} 个词元"),
    )
    drawn = [[(row["name"], *row["values"]) for row in result["rows"]] for result in results]
    cells = len(drawn[0][0][1])
    left, width, row = 64, 640 / cells, 16
    height = 34 + row * len(drawn[0]) + 14
    s = Svg(left + cells * width + 8, height * len(drawn) + 30)
    used = []
    for panel, (title, lines) in enumerate(zip(titles, drawn)):
        y = panel * height + 20
        s.text(left, y, title, "bold", "start")
        s.text(left - 8, y, tr("step", "步"), "muted", "end", size=13)
        held = 0
        for i, (step, owners, tokens) in enumerate(lines):
            top = y + 10 + i * row
            s.text(left - 8, top + 11, step, "muted", "end", size=12)
            states = list(zip(owners, tokens))
            held += tokens.count("1")
            begin = 0
            for at in range(1, cells + 1):
                if at < cells and states[at] == states[begin]:
                    continue
                owner, token = states[begin]
                tint = (
                    "c0 hollow"
                    if owner == "0"
                    else f"c{owner} solid"
                    if token == "1"
                    else f"c{owner}"
                )
                s.rect(left + begin * width, top, (at - begin) * width - 1, row - 3, tint, rx=0)
                begin = at
        used.append(100 * held / (cells * len(lines)))
    y = height * len(drawn) + 14
    for i, (tint, text) in enumerate(
        (
            ("c1 solid", tr("holds tokens", "存着词元")),
            ("c1", tr("owned, without a token", "已分配，没有词元")),
            ("c0 hollow", tr("free", "空闲")),
        )
    ):
        s.rect(left + i * 220, y - 11, 16, 13, tint, rx=0)
        s.text(left + i * 220 + 24, y, text, "", "start")
    alt = tr(
        f"A pool of {cells} pieces of {cell} slots at {len(drawn[0])} moments. With slots side by side {used[0]:.0f} % of the pieces "
        f"begin with a token, on average; with blocks of {cell} it is {used[1]:.0f} %.",
        f"由 {cells} 片、每片 {cell} 个槽位组成的池，在 {len(drawn[0])} 个时刻的样子。连续存放时，平均 {used[0]:.0f} % 的片开头存着词元；"
        f"每块 {cell} 个词元时是 {used[1]:.0f} %。",
    )
    caption = tr(
        "From the simulation, with a pool of 1024 slots: time runs downwards, a tint is a request.",
        "取自模拟，池有 1024 个槽位：时间自上而下，一种颜色是一个请求。",
    )
    return figure(s, alt=alt, caption=caption)
