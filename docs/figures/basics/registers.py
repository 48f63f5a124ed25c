"""A drawing of registers: how local memory is laid out."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def layout(
    lanes: int = 8, words: int = 4, chosen: tuple[int, ...] = (2, 0, 2, 1, 3, 2, 0, 2)
) -> str:
    """Local memory of `lanes` lanes: a row is one word of all lanes; `chosen` is the word that each lane wants."""
    cell, left, top = 52, 96, 44
    s = Svg(left + lanes * cell + 150, top + words * 44 + 8)
    cells = Grid(s, left, top, cell, 44, gap=(4, 10), rx=3)
    cells.heads((f"lane {lane}" for lane in range(lanes)), size=13, up=12)
    touched = sorted(set(chosen))
    for word in range(words):
        cells.name(word, f"c[{word}]", "mono")
        cells.row(word, ["c2" if wanted == word else "hollow muted" for wanted in chosen])
        count = chosen.count(word)
        cells.note(word, lanes, tr(f"{count} lane" + "s" * (count != 1), f"{count} 个 lane"))
    alt = tr(
        f"Local memory as rows: row k holds word k of all {lanes} lanes. The lanes want words {', '.join(map(str, chosen))}, "
        f"which lie in {len(touched)} rows; if all wanted the same word, it would be one.",
        f"本地内存按行排列：第 k 行是全部 {lanes} 个 lane 的第 k 个字。各 lane 访问的字是 {'、'.join(map(str, chosen))}，"
        f"落在 {len(touched)} 行里；如果所有 lane 访问同一个字，就只有一行。",
    )
    caption = tr(
        f"A row holds the same word of all lanes, side by side in memory. Colored: the word that each lane wants. If all want the same word, they touch one row; here {lanes} lanes touch {len(touched)} rows.",
        f"一行是所有 lane 的同一个字，在内存里连续存放；着色的是各 lane 访问的字。如果所有 lane 访问同一个字，只涉及一行；这里 {lanes} 个 lane 涉及 {len(touched)} 行。",
    )
    return figure(s, alt=alt, caption=caption)
