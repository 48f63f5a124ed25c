"""Figures of the chapter on continuous batching: schedules of the recorded run, and the tiles of a mixed step."""

from __future__ import annotations

from cudatut.site import references
from cudatut.site.svg import Svg, figure, text_width, tr

EXAMPLE = "llm/continuous_batching"
LEFT, WAITS, PREEMPTED, DECODES, PREFILLS = 0, 1, 2, 3, 10  # and n tokens more


def _schedules() -> list[list[list[int]]]:
    """Of static and of continuous batching: what each request does in each step."""
    found = references.load(EXAMPLE).results("schedule")[:2]
    return [[[int(x) for x in row["value"].split()] for row in one["rows"]] for one in found]


def schedule() -> str:
    """Who prefills, decodes, waits and is preempted, step by step, under both schedulers."""
    static, continuous = _schedules()
    left, cell, high = 92, 18, 20
    panel = high * len(static) + 46
    s = Svg(left + cell * len(static[0]) + 12, 2 * panel + 34)
    names = (tr("static batches", "静态批处理"), tr("continuous batching", "连续批处理"))
    for number, (name, rows) in enumerate(zip(names, (static, continuous))):
        top = number * panel + 26
        steps = tr(f"{name}: {len(rows[0])} steps", f"{name}：{len(rows[0])} 步")
        s.text(left, top - 8, steps, "bold", "start")
        for i, row in enumerate(rows):
            y = top + i * high
            s.text(left - 8, y + 14, tr(f"request {i}", f"请求 {i}"), "muted", "end", 12)
            for step, what in enumerate(row):
                box = left + step * cell, y, cell - 2, high - 3
                if what == WAITS:
                    s.rect(*box, "hollow dash muted", rx=0)
                elif what == PREEMPTED:
                    s.rect(*box, "c5 solid", "×", rx=0, size=12)
                elif what == DECODES:
                    s.rect(*box, "c2", rx=0)
                elif what >= PREFILLS:
                    s.rect(*box, "c1", what - PREFILLS, rx=0, size=11)
    legend = (
        ("c1", "5", tr("prefills 5 tokens", "预填充 5 个词元")),
        ("c2", None, tr("decodes", "解码")),
        ("hollow dash muted", None, tr("waits", "等待")),
        ("c5 solid", "×", tr("is preempted", "被抢占")),
    )
    x, y = left, 2 * panel + 8
    for cls, mark, words in legend:
        s.rect(x, y, cell - 2, high - 3, cls, mark, rx=0, size=11)
        s.text(x + cell + 4, y + 13, words, "", "start", 12)
        x += cell + 26 + text_width(words, 12)
    waits = [sum(row.count(WAITS) for row in rows) for rows in (static, continuous)]
    preempted = sum(row.count(PREEMPTED) for row in continuous)
    alt = tr(
        f"{len(static)} requests, three at a time. Static batches take {len(static[0])} steps, continuous batching {len(continuous[0])}. "
        f"All together the requests wait {waits[0]} steps with static batches and {waits[1]} with continuous batching, where {preempted} request is preempted once.",
        f"{len(static)} 个请求，同时三个。静态批处理用 {len(static[0])} 步，连续批处理用 {len(continuous[0])} 步。所有请求等待的步数合计：静态 {waits[0]} 步，"
        f"连续 {waits[1]} 步；连续批处理中有 {preempted} 个请求被抢占一次。",
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
    s.text(left, 18, tr("position →", "位置 →"), "muted", "start", 13)
    items = 0
    for i, (queries, length) in enumerate(sequences):
        y = top + i * high
        s.text(left - 10, y + 17, tr(f"request {i}", f"请求 {i}"), "", "end", 13)
        s.rect(left, y, unit * length, 24, "c0", rx=0)
        first = length - queries
        for tile in range(first // bm, -(-length // bm)):
            begin, end = max(first, tile * bm), min(length, (tile + 1) * bm)
            number = tile - first // bm
            words = f"({i}, {number})"
            x, wide = left + unit * begin, unit * (end - begin)
            s.rect(x, y, wide - 1, 24, f"c{1 + items % 6}", rx=0)
            if wide > text_width(words, 12):
                s.text(x + wide / 2, y + 17, words, size=12)
            items += 1
    for line in range(0, longest + 1, bm):
        x = left + unit * line
        s.line(x, top - 8, x, top + high * len(sequences) - 4, "dash muted")
        s.text(x, top - 12, line, "muted", size=11)
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
        f"一个混合的步。灰色的词元已经算过，彩色的是这一步的查询。分块从 {bm} 的整数倍开始，所以这 {items} 个彩色的部分就是一次启动的全部工作，每一项是“请求，分块”。",
    )
    return figure(s, alt=alt, caption=caption)
