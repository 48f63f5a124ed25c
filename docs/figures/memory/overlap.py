"""Drawings of overlap: a pipeline by arithmetic, and the timelines that CUPTI saw."""

from cudatut.site import references
from cudatut.site.drawing import Lanes, Svg, figure, hue, tr

EXAMPLE = "memory/overlap_timelines"
STAGES = "in", "kernel", "out"


def _names() -> tuple[str, ...]:
    return tr("copy in", "传入"), "kernel", tr("copy out", "传出")


def _schedule(costs: tuple[float, ...], chunks: int) -> list[list[tuple[float, float]]]:
    """Of each chunk, begin and end of its stages; each engine does one thing at a time."""
    free, rows = [0.0] * len(costs), []
    for _ in range(chunks):
        at, row = 0.0, []
        for stage, cost in enumerate(costs):
            begin = max(at, free[stage])
            at = free[stage] = begin + cost / chunks
            row.append((begin, at))
        rows.append(row)
    return rows


def pipeline(costs: tuple[float, float, float] = (4, 5, 4), chunks: int = 4) -> str:
    """The same three stages in one piece and in chunks, to scale."""
    whole, high, left = sum(costs), 30, 110
    s = Svg(left + 560, 2 * (3 * high + 46))
    ends = []
    for which, count in enumerate((1, chunks)):
        top = 34 + which * (3 * high + 46)
        title = (
            tr("in one piece", "不分段")
            if count == 1
            else tr(f"in {count} chunks", f"分 {count} 段")
        )
        s.text_from(12, top - 12, title, "bold")
        lanes = Lanes(s, left, top, 540 / whole, high, gap=2, rx=3, size=12)
        for lane, name in enumerate(_names()):
            lanes.named(lane, 12, name)
        for chunk, row in enumerate(_schedule(costs, count)):
            for lane, (begin, end) in enumerate(row):
                lanes.bar(lane, begin, end, hue(chunk), chunk if count > 1 else None, spare=True)
        ends.append(_schedule(costs, count)[-1][-1][1])
    alt = tr(
        f"Copy in, kernel and copy out. In one piece they follow each other and take {ends[0]:g} units; in {chunks} chunks they overlap and take {ends[1]:g}.",
        f"传入、kernel、传出。不分段时依次进行，共 {ends[0]:g} 个单位；分 {chunks} 段时互相重叠，共 {ends[1]:g} 个单位。",
    )
    caption = tr(
        "Time runs to the right; a number is a chunk. Each chunk still goes through its three stages one after the other.",
        "时间从左到右，数字是段的编号。每一段数据仍然依次经过三个阶段。",
    )
    return figure(s, alt=alt, caption=caption)


def timelines() -> str:
    """What CUPTI saw: when each chunk was copied in, computed with and copied out, in four runs."""
    titles = (
        tr("one stream", "一个流"),
        tr("four streams, depth-first", "四个流，深度优先"),
        tr("four streams, breadth-first", "四个流，广度优先"),
        tr("four streams, pageable memory", "四个流，可分页内存"),
    )
    runs = [references.table(EXAMPLE, "timelines", index) for index in range(len(titles))]
    lasts = [max(row["out, end"] for row in run.values()) for run in runs]
    # Pageable memory takes several times as long: to the scale of the others nothing of theirs could be seen.
    wholes = [max(lasts[:-1])] * (len(runs) - 1) + [lasts[-1]]
    high, left, whole = 20, 110, 3 * 20 + 46
    s = Svg(left + 580, whole * len(runs) + 6)
    for which, (title, run, last, longest) in enumerate(zip(titles, runs, lasts, wholes)):
        top = 34 + which * whole
        s.text_from(12, top - 12, f"{title}: {last:.1f} ms", "bold")
        lanes = Lanes(s, left, top, 560 / longest, high, gap=1, rx=2, size=11)
        for lane, (stage, name) in enumerate(zip(STAGES, _names())):
            lanes.named(lane, 12, name)
            for chunk, row in enumerate(run.values()):
                lanes.bar(
                    lane,
                    row[f"{stage}, begin"],
                    row[f"{stage}, end"],
                    hue(chunk),
                    chunk,
                    spare=True,
                )
    said = ", ".join(f"{title} {last:.1f} ms" for title, last in zip(titles, lasts))
    alt = tr(
        f"Four timelines of {len(runs[0])} chunks: {said}.",
        f"四条时间线，各 {len(runs[0])} 段：{said}。",
    )
    caption = tr(
        f"Recorded by CUPTI; a color and a number are a chunk. The last run is drawn to a scale of its own, {wholes[-1] / wholes[0]:.1f} times as long.",
        f"CUPTI 的实测记录；颜色和数字表示段的编号。最后一次运行另用一把比例尺，全长是上面各次的 {wholes[-1] / wholes[0]:.1f} 倍。",
    )
    return figure(s, alt=alt, caption=caption)
