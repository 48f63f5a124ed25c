"""Drawings of loads and multiplications over time: as planned, and as the clock of an SM saw them."""

from __future__ import annotations

from cudatut.site import references
from cudatut.site.svg import Svg, figure, tr

EXAMPLE = "gemm/double_buffering"


def _bar(s: Svg, x1: float, x2: float, y: float, cls: str, text: object) -> None:
    """A bar from x1 to x2, with its text where it fits."""
    s.rect(x1, y, max(x2 - x1, 1), 24, cls, text if x2 - x1 > 22 else None, rx=2)


def plan(load: int = 7, multiply: int = 10, tiles: int = 4) -> str:
    """Two schedules of the same tiles: each loaded before it is multiplied, or while the one before it is."""
    step = max(load, multiply)
    late, early = tiles * (load + multiply), load + (tiles - 1) * step + multiply
    left, scale = 100, 600 / late
    s = Svg(720, 196)
    for k, (name, begins, total) in enumerate(
        (
            (tr("loads late", "先加载再乘"), [i * (load + multiply) for i in range(tiles)], late),
            (tr("loads early", "提前加载"), [max(0, load + (i - 1) * step) for i in range(tiles)], early),
        )
    ):  # fmt: skip
        y = 30 + 86 * k
        s.text(4, y - 10, name, "bold", "start")
        s.text(left - 8, y + 17, tr("load", "加载"), "muted", "end")
        s.text(left - 8, y + 45, tr("multiply", "相乘"), "muted", "end")
        for i, at in enumerate(begins):
            start = at + load if k == 0 else load + i * step
            _bar(s, left + scale * at, left + scale * (at + load), y, "c3", i)
            _bar(s, left + scale * start, left + scale * (start + multiply), y + 28, "c1", i)
        end = left + scale * total
        s.line(end, y - 6, end, y + 58, "dash")
    alt = tr(
        f"{tiles} tiles, {load} units to load and {multiply} to multiply each. Loads late: {late} units. Loads early: {early}.",
        f"{tiles} 个分块，每个加载 {load} 个单位时间，相乘 {multiply} 个。先加载再乘：共 {late}；提前加载：共 {early}。",
    )
    caption = tr(
        f"The plan, drawn for a load of {load} and a multiplication of {multiply} units: {late} units for {tiles} tiles, or "
        f"{early}. A number is a tile; the lower order needs two buffers, for a tile arrives while another is read.",
        f"设想的安排，按加载 {load}、相乘 {multiply} 个单位时间画出：{tiles} 个分块共需 {late} 或 {early}。数字是分块编号；"
        "后一种要有两个缓冲区，因为一个分块到达时，另一个正在被读。",
    )
    return figure(s, alt=alt, caption=caption)


def timeline() -> str:
    """What the clock saw in one block: for each order, when tiles were on their way and when they were multiplied."""
    names = {
        "one buffer": tr("one buffer", "一个缓冲区"),
        "two buffers, loads late": tr("two buffers, loads late", "两个缓冲区，现用现加载"),
        "two buffers, loads early": tr("two buffers, loads early", "两个缓冲区，提前加载"),
        "cp.async": "cp.async",
    }
    orders = []
    for result, name in zip(references.load(EXAMPLE).results("timeline"), names.values()):
        events = [column["name"] for column in result["columns"]]
        tiles = {
            int(row["name"].split()[-1]): dict(zip(events, row["values"])) for row in result["rows"]
        }
        orders.append((name, tiles))
    last = max(of["done"] for _, tiles in orders for of in tiles.values())
    left, height = 96, 104
    scale = (716 - left) / last
    s = Svg(720, 30 + height * len(orders))
    tick = 10 ** len(str(int(last / 4))) // 10
    tick *= max(1, round(last / 4 / tick))
    floor = 30 + height * (len(orders) - 1) + 60
    for value in range(0, int(last) + 1, tick):
        x = left + scale * value
        for k in range(len(orders)):  # not across the names
            s.line(x, 26 + height * k, x, 90 + height * k, "dash muted")
        s.text(x, floor + 18, f"{value}", "muted")
    told = []
    for k, (name, tiles) in enumerate(orders):
        y = 30 + height * k
        s.text(4, y - 10, name, "bold", "start")
        s.text(left - 8, y + 17, tr("on its way", "在路上"), "muted", "end")
        s.text(left - 8, y + 45, tr("multiplied", "相乘"), "muted", "end")
        for tile, of in tiles.items():
            _bar(s, left + scale * of["issued"], left + scale * of["arrived"], y, "c3", tile)
            _bar(s, left + scale * of["begun"], left + scale * of["done"], y + 28, "c1", tile)
        ordered = sorted(tiles)
        span = tiles[ordered[-1]]["begun"] - tiles[ordered[0]]["begun"]
        told.append((name, round(span / (len(ordered) - 1))))
    steps = dict(told)
    alt = tr(
        "Cycles per step in one block: " + ", ".join(f"{n} {c}" for n, c in steps.items()) + ".",
        "一个线程块里每一步的周期数：" + "，".join(f"{n} {c}" for n, c in steps.items()) + "。",
    )
    caption = tr(
        "Recorded stamps of thread 0 of one block, cycles since the first tile's loads were issued; a number is a tile. "
        "'On its way' ends where the thread knows that the tile is there, which for early loads is only when it asks.",
        "一个线程块中 0 号线程的实测时间戳，横轴是从第一个分块开始发出加载算起的周期数，数字是分块编号。“在路上”止于线程得知"
        "分块已到的时刻；提前加载时，要等它来问才知道。",
    )
    return figure(s, alt=alt, caption=caption)
