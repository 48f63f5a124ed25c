"""Figures of the chapter on continuous batching: schedules of the recorded run, and the tiles of a mixed step."""

from cudatut.site import references
from cudatut.site.drawing import Grid, Lanes, Svg, figure, hue, legend, tr

EXAMPLE = "llm/continuous_batching"
LEFT, WAITS, PREEMPTED, DECODES, PREFILLS = 0, 1, 2, 3, 10  # and n tokens more


def _schedules() -> list[list[list[int]]]:
    """Of static and of continuous batching: what each request does in each step."""
    found = (references.facts(EXAMPLE, "schedule", index).values() for index in (0, 1))
    return [[[int(x) for x in steps.split()] for steps in requests] for requests in found]


def schedule() -> str:
    """Who prefills, decodes, waits and is preempted, step by step, under both schedulers."""
    static, continuous = _schedules()
    left, cell, high = 92, 18, 20
    panel = high * len(static) + 46
    s = Svg(left + cell * len(static[0]) + 12, 2 * panel + 34)
    names = (tr("static batches", "静态批处理"), tr("continuous batching", "连续批处理"))
    waits, out, decodes = "hollow dash muted", ("c5 solid", "×"), "c2"
    shown = {LEFT: None, WAITS: waits, PREEMPTED: out, DECODES: decodes}
    for number, (name, rows) in enumerate(zip(names, (static, continuous))):
        top = number * panel + 26
        steps = tr(f"{name}: {len(rows[0])} steps", f"{name}：{len(rows[0])} 步")
        s.text_from(left, top - 8, steps, "bold")
        cells = Grid(s, left, top, cell, high, gap=(2, 3), rx=0, size=11)
        for i, row in enumerate(rows):
            cells.name(i, tr(f"request {i}", f"请求 {i}"), size=12, away=8)
            cells.row(i, [shown.get(what, ("c1", what - PREFILLS)) for what in row])
    entries = (
        ("c1", tr("prefills 5 tokens", "预填充 5 个词元"), 5),
        (decodes, tr("decodes", "解码")),
        (waits, tr("waits", "等待")),
        (out[0], tr("is preempted", "被抢占"), out[1]),
    )
    legend(s, left, 2 * panel + 8, entries, size=12, high=17)
    waited = [sum(row.count(WAITS) for row in rows) for rows in (static, continuous)]
    preempted = sum(row.count(PREEMPTED) for row in continuous)
    alt = tr(
        f"{len(static)} requests, three at a time. Static batches take {len(static[0])} steps, continuous batching {len(continuous[0])}. "
        f"All together the requests wait {waited[0]} steps with static batches and {waited[1]} with continuous batching, where {preempted} request is preempted once.",
        f"{len(static)} 个请求，同时三个。静态批处理用 {len(static[0])} 步，连续批处理用 {len(continuous[0])} 步。所有请求等待的步数合计：静态 {waited[0]} 步，"
        f"连续 {waited[1]} 步；连续批处理中有 {preempted} 个请求被抢占一次。",
    )
    caption = tr(
        "The recorded schedules of the same seven requests. A column is a step; at most three requests and 12 tokens are in one, and there are "
        "10 blocks of 4 tokens.",
        "同样七个请求的两份调度记录。一列是一步，一步最多三个请求、12 个词元；共有 10 个块，每块 4 个词元。",
    )
    return figure(s, alt=alt, caption=caption)


def mixed(
    sequences: tuple[tuple[int, int], ...] = ((1, 9), (1, 22), (1, 14), (11, 30)), bm: int = 8
) -> str:
    """Queries and keys of one mixed step: a row per request, its queries cut into tiles of `bm` positions."""
    unit, left, top, high = 15, 96, 44, 34
    longest = max(length for _, length in sequences)
    s = Svg(left + unit * longest + 20, top + high * len(sequences) + 10)
    s.text_from(left, 18, tr("position →", "位置 →"), "muted", 13)
    rows = Lanes(s, left, top, unit, high, gap=(1, 10), rx=0, size=12)
    items = 0
    for i, (queries, length) in enumerate(sequences):
        rows.name(i, tr(f"request {i}", f"请求 {i}"), "", 13).bar(i, 0, length, "c0")
        first = length - queries
        for tile in range(first // bm, -(-length // bm)):
            begin, end = max(first, tile * bm), min(length, (tile + 1) * bm)
            rows.bar(i, begin, end, hue(items), f"({i}, {tile - first // bm})", spare=True)
            items += 1
    for line in range(0, longest + 1, bm):
        rows.moment(line, 0, len(sequences) - 1, "dash muted", over=7)
        s.text(rows.when(line), top - 12, line, "muted", size=11)
    alt = tr(
        f"{len(sequences)} requests: "
        + "; ".join(f"{q} queries at the end of {n} tokens" for q, n in sequences)
        + f". Together {items} tiles of queries.",
        f"{len(sequences)} 个请求："
        + "；".join(f"{n} 个词元，末尾 {q} 个是查询" for q, n in sequences)
        + f"。一共 {items} 个查询分块。",
    )
    caption = tr(
        f"A mixed step. Grey tokens are computed already; colored ones are its queries. Tiles begin at multiples of {bm}, so the {items} colored pieces are "
        "the work of one launch: pairs of a request and a tile.",
        f"一个混合步。灰色的词元已经算过，彩色的是这一步的查询。分块的起点是 {bm} 的整数倍，所以这 {items} 块彩色就是一次启动的全部工作，每一项是“请求，分块”。",
    )
    return figure(s, alt=alt, caption=caption)
