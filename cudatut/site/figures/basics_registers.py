"""Drawings of registers: the launch-bounds sweep as recorded, and how local memory is laid out."""

from __future__ import annotations

from cudatut.site import references
from cudatut.site.svg import Svg, figure, tr

EXAMPLE = "basics/registers"


def sweep() -> str:
    """Per setting: registers, occupancy, local memory traffic and time, from the recording."""
    recording = references.load(EXAMPLE)
    needs = recording.results("compile")
    times = {row["name"]: row["median_us"] for row in recording.results("bench")[0]["rows"]}
    traffic = {
        row["name"]: row["value"]
        for row in recording.results("predict")[1]["rows"]
        if row["unit"] == "MB"
    }
    left, width, row = 72, 380, 34
    s = Svg(720, 40 + row * len(times) + 8)
    heads = (
        (4, tr("at least", "至少"), "start"),
        (left, tr("time", "时间"), "start"),
        (540, tr("registers", "寄存器"), "end"),
        (620, tr("occupancy", "占用率"), "end"),
        (712, tr("local, MB", "本地内存，MB"), "end"),
    )
    for x, text, anchor in heads:
        s.text(x, 20, text, "muted", anchor)
    slowest, best = max(times.values()), min(times, key=times.get)
    for line, (name, resources) in enumerate(zip(times, needs, strict=True)):
        y = 34 + row * line
        blocks = name.removeprefix("min ")
        label = tr(f"{blocks} block" + "s" * (blocks != "1"), f"{blocks} 块")
        s.text(4, y + 18, label, "", "start")
        s.rect(left, y, width * times[name] / slowest, 26, "good" if name == best else "c1", rx=2)
        inside = width * times[name] / slowest > 200
        x = left + width * times[name] / slowest + (-8 if inside else 8)
        s.text(x, y + 18, f"{times[name]:.0f} µs", "", "end" if inside else "start")
        s.text(540, y + 18, resources["registers"], "", "end")
        s.text(620, y + 18, f"{resources['occupancy']:.0%}", "", "end")
        moved = sum(traffic.get(f"{name}: {what}", 0) for what in ("loads", "stores"))
        s.text(712, y + 18, f"{moved:,.0f}", "", "end")
    alt = tr(
        "Bars of the time of one kernel for six launch bounds. "
        + "; ".join(
            f"{n}: {r['registers']} registers, {r['occupancy']:.0%}, {times[n]:.0f} µs"
            for n, r in zip(times, needs)
        ),
        "同一个 kernel 在六种启动边界下的时间条。"
        + "；".join(
            f"{n}：{r['registers']} 个寄存器，占用率 {r['occupancy']:.0%}，{times[n]:.0f} µs"
            for n, r in zip(times, needs)
        ),
    )
    caption = tr(
        "The same source, compiled for at least 1 to 8 resident blocks of 256 threads. The local traffic is read off the machine code.",
        "同一份源码，分别按“至少 1 到 8 个驻留线程块（每块 256 线程）”编译。本地内存流量由机器码数出。",
    )
    return figure(s, alt=alt, caption=caption)


def layout(
    lanes: int = 8, words: int = 4, chosen: tuple[int, ...] = (2, 0, 2, 1, 3, 2, 0, 2)
) -> str:
    """Local memory of `lanes` lanes: a row is one word of all lanes; `chosen` is the word that each lane asks for."""
    cell, left, top = 52, 96, 44
    s = Svg(left + lanes * cell + 150, top + words * 44 + 8)
    for lane in range(lanes):
        s.text(
            left + lane * cell + cell / 2,
            top - 12,
            tr(f"lane {lane}", f"lane {lane}"),
            "muted",
            size=13,
        )
    touched = sorted(set(chosen))
    for word in range(words):
        y = top + word * 44
        s.text(left - 10, y + 23, f"c[{word}]", "mono", "end")
        for lane in range(lanes):
            hit = chosen[lane] == word
            s.rect(left + lane * cell, y, cell - 4, 34, "c2" if hit else "hollow muted", rx=3)
        count = sum(c == word for c in chosen)
        s.text(
            left + lanes * cell + 8,
            y + 23,
            tr(f"{count} lane" + "s" * (count != 1), f"{count} 个 lane"),
            "muted",
            "start",
        )
    alt = tr(
        f"Local memory as rows: row k holds word k of all {lanes} lanes. The lanes ask for words {', '.join(map(str, chosen))}, "
        f"which lie in {len(touched)} rows; had all asked for the same word, it would be one.",
        f"本地内存按行排列：第 k 行是全部 {lanes} 个 lane 的第 k 个字。各 lane 要的字是 {'、'.join(map(str, chosen))}，"
        f"落在 {len(touched)} 行里；如果大家要同一个字，就只有一行。",
    )
    caption = tr(
        f"The same index in all lanes is one row, neighbors in memory. Here {lanes} lanes touch {len(touched)} rows.",
        f"所有 lane 用同一个下标，就是内存中相邻的一行；这里 {lanes} 个 lane 碰到了 {len(touched)} 行。",
    )
    return figure(s, alt=alt, caption=caption)
