"""Figures of the chapter on PagedAttention: three kinds of waste, and tables of blocks."""

from cudatut.site import references
from cudatut.site.drawing import Grid, Kind, Lanes, Svg, figure, legend, tr


def kinds(
    requests: tuple[tuple[int, int, int], ...] = ((9, 4, 24), (6, 3, 12)), slots: int = 44
) -> str:
    """A pool in which each request has slots side by side: those with a token, still to come, reserved at first."""
    cell, top = 16, 62
    s = Svg(slots * cell + 12, top + 100)
    x, told, free = 6, [], slots
    for (held, coming, reserved), name in zip(requests, "AB"):
        never = reserved - held - coming
        words = f"request {name}: at most {reserved} tokens", f"请求 {name}：最多 {reserved} 个词元"
        s.text(x + reserved * cell / 2, 24, tr(*words))
        s.line(x, 34, x + reserved * cell - 3, 34, "muted")
        kinds = ["c3"] * held + ["c1"] * coming + ["c2"] * never
        Grid(s, x, top - 16, cell, 32, gap=2, rx=0).row(0, kinds)
        x, free = x + reserved * cell, free - reserved
        told.append((name, held, coming, never))
    Grid(s, x, top - 16, cell, 32, gap=2, rx=0).row(0, ["c0"] * free)
    most = requests[0][2]
    entries = (
        ("c3", tr("hold a token", "存着词元")),
        ("c1", tr("reserved: a token will come", "预留：以后会用上")),
        ("c2", tr("internal: never used", "内部：始终用不上")),
        ("c0", tr(f"external: too few for {most}", f"外部：不够放 {most} 个")),
    )
    for row in range(2):
        of_row = entries[2 * row : 2 * row + 2]
        legend(s, 6, top + 40 + 30 * row, of_row, step=330, high=18)
    alt = tr(
        f"A pool of {slots} slots. "
        + " ".join(
            f"Request {name} holds {held} tokens, {coming} more will come, and {never} slots are never used."
            for name, held, coming, never in told
        )
        + f" {free} slots are free, too few for a request that may have {most} tokens.",
        f"池里有 {slots} 个槽位。"
        + "".join(
            f"请求 {name} 存着 {held} 个词元，还会再来 {coming} 个，另有 {never} 个槽位始终用不上。"
            for name, held, coming, never in told
        )
        + f"剩下 {free} 个空闲槽位，放不下最多 {most} 个词元的请求。",
    )
    caption = tr(
        "Slots side by side, as many as a request may ever need. While the requests run, nobody knows which slots are "
        "reserved and which are internal waste.",
        "槽位连续，并且按请求可能用到的最大数量划分。请求运行期间，看不出哪些槽位是预留，哪些是内部浪费。",
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
    s.text_from(4, 24, tr("tables", "块表"), "muted")
    s.text_from(left, 24, tr(f"pool: blocks of {block} slots", f"池：每块 {block} 个槽位"), "muted")
    held: dict[int, list[Kind]] = {}  # by block of the pool: its tokens
    for number, (tokens, table) in enumerate(sequences):
        name, y = "AB"[number], top + 112 * number
        words = tr(f"sequence {name}, {tokens} tokens", f"序列 {name}，{tokens} 个词元")
        s.text_from(4, y + 20, words)
        Grid(s, 4, y + 30, 40, 34, gap=4).row(0, [(f"c{2 + number}", at) for at in table])
        for i, at in enumerate(table):
            inside = range(i * block, min((i + 1) * block, tokens))
            held[at] = [(f"c{2 + number}", f"{name}{token}") for token in inside]
            held[at] += [f"c{2 + number} hollow dash"] * (block - len(inside))
    slots = Grid(s, left, top, cell, 36, gap=(3, 6), rx=0, size=13)
    for at in range(blocks):
        slots.name(at, at, size=14, away=12).row(at, held.get(at, ["c0"] * block))
    unused = [at for at in range(blocks) if at not in held]
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
        f"{token % block}。所以这个词元在槽位 {table[token // block]} * {block} + {token % block} = {table[token // block] * block + token % block}。",
    )
    return figure(s, alt=alt, caption=caption)


def pools(cell: int = 16) -> str:
    """The pools that the simulation drew: a line for each moment, a tint for each request."""
    maps = [references.table("llm/paged_attention_map", "map", index) for index in (0, 1)]
    titles = (
        tr("side by side, the next power of two", "连续存放，取 2 的幂"),
        tr(f"blocks of {cell}", f"每块 {cell} 个词元"),
    )
    # Of each pool and moment: the owner of each piece, and whether it begins with a token.
    drawn = [{step: list(zip(*row.values())) for step, row in moments.items()} for moments in maps]
    cells = len(next(iter(drawn[0].values())))
    left, width, row = 64, 640 / cells, 16
    height = 34 + row * len(drawn[0]) + 14
    s = Svg(left + cells * width + 8, height * len(drawn) + 30)

    def tint(state: tuple[str, str]) -> str:
        owner, token = state
        return "c0 hollow" if owner == "0" else f"c{owner} solid" if token == "1" else f"c{owner}"

    used = []
    for panel, (title, moments) in enumerate(zip(titles, drawn)):
        y = panel * height + 20
        s.text_from(left, y, title, "bold").text_to(left - 8, y, tr("step", "步"), "muted", 13)
        lanes = Lanes(s, left, y + 10, width, row, gap=(1, 3), rx=0)
        for i, (step, states) in enumerate(moments.items()):
            lanes.name(i, step, size=12, away=8).runs(i, states, tint)
        held = [token for states in moments.values() for _, token in states]
        used.append(100 * held.count("1") / len(held))
    entries = (
        ("c1 solid", tr("holds tokens", "存着词元")),
        ("c1", tr("owned, without a token", "已分配，没有词元")),
        ("c0 hollow", tr("free", "空闲")),
    )
    legend(s, left, height * len(drawn) + 3, entries, step=220, high=13)
    alt = tr(
        f"A pool of {cells} pieces of {cell} slots at {len(drawn[0])} moments. With slots side by side {used[0]:.0f} % of the pieces "
        f"begin with a token, on average; with blocks of {cell} it is {used[1]:.0f} %.",
        f"由 {cells} 片、每片 {cell} 个槽位组成的池，在 {len(drawn[0])} 个时刻的样子。连续存放时，平均 {used[0]:.0f} % 的片开头存着词元；"
        f"每块 {cell} 个词元时是 {used[1]:.0f} %。",
    )
    caption = tr(
        "From the simulation, with a pool of 1024 slots: time runs downwards, a tint is a request.",
        "取自模拟，池有 1024 个槽位：时间自上而下，一种颜色代表一个请求。",
    )
    return figure(s, alt=alt, caption=caption)
