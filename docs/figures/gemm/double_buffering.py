"""Drawings of loads and multiplications over time: as planned, and as the clock of an SM saw them."""

from cudatut.site import references
from cudatut.site.drawing import Lanes, Svg, figure, tr

EXAMPLE = "gemm/double_buffering"


def _pair(s: Svg, k: int, unit: float, title: str, above: str, below: str) -> Lanes:
    """The lanes of the loads and of the products of schedule k, under its title."""
    lanes = Lanes(s, 100, 30 + k, unit, 28, gap=(0, 4))
    s.text_from(4, 20 + k, title, "bold")
    lanes.name(0, above, away=8).name(1, below, away=8)
    return lanes


def plan(load: int = 7, multiply: int = 10, tiles: int = 4) -> str:
    """Two schedules of the same tiles: each loaded before it is multiplied, or while the one before it is."""
    step = max(load, multiply)
    late, early = tiles * (load + multiply), load + (tiles - 1) * step + multiply
    s, unit = Svg(720, 196), 600 / late
    schedules = (
        (tr("loads late", "现用现读"), [i * (load + multiply) for i in range(tiles)], late),
        (tr("loads early", "提前读取"), [max(0, load + (i - 1) * step) for i in range(tiles)], early),
    )  # fmt: skip
    for k, (name, begins, total) in enumerate(schedules):
        lanes = _pair(s, 86 * k, unit, name, tr("load", "读取"), tr("multiply", "相乘"))
        for i, at in enumerate(begins):
            start = at + load if k == 0 else load + i * step
            lanes.bar(0, at, at + load, "c3", i).bar(1, start, start + multiply, "c1", i)
        lanes.moment(total, 0, 1, "dash")
    alt = tr(
        f"{tiles} tiles, {load} units to load and {multiply} to multiply each. Loads late: {late} units. Loads early: {early}.",
        f"{tiles} 个分块，每个读取 {load} 个单位时间，相乘 {multiply} 个。现用现读：共 {late}；提前读取：共 {early}。",
    )
    caption = tr(
        f"The plan, drawn for a load of {load} and a multiplication of {multiply} units: {late} units for {tiles} tiles, or "
        f"{early}. A number is a tile; the lower order needs two buffers, for a tile arrives while another is read.",
        f"设想读取要 {load} 个单位时间、相乘要 {multiply} 个：{tiles} 个分块共需 {late} 或 {early}。数字是分块编号；"
        "后一种要有两个缓冲区，因为一个分块到达时，线程还在用另一个做乘法。",
    )
    return figure(s, alt=alt, caption=caption)


def timeline() -> str:
    """What the clock saw in one block: for each order, when tiles were on their way and when they were multiplied."""
    names = (
        tr("one buffer", "一个缓冲区"),
        tr("two buffers, loads late", "两个缓冲区，现用现读"),
        tr("two buffers, loads early", "两个缓冲区，提前读取"),
        "cp.async",
    )
    orders = [references.table(EXAMPLE, "timeline", index) for index in range(len(names))]
    last = max(of["done"] for tiles in orders for of in tiles.values())
    height = 104
    s, unit = Svg(720, 30 + height * len(orders)), 616 / last
    tick = 10 ** len(str(int(last / 4))) // 10
    tick *= max(1, round(last / 4 / tick))
    steps, moments = {}, range(0, int(last) + 1, tick)
    places: list[float] = []
    for k, (name, tiles) in enumerate(zip(names, orders)):
        way, product = tr("on its way", "在路上"), tr("multiplied", "相乘")
        lanes = _pair(s, height * k, unit, name, way, product)
        places = list(map(lanes.when, moments))  # the same ones in all
        for at in moments:  # not across the names
            lanes.moment(at, 0, 1, over=4)
        for tile, of in tiles.items():
            number = tile.split()[-1]
            lanes.bar(0, of["issued"], of["arrived"], "c3", number, spare=True)
            lanes.bar(1, of["begun"], of["done"], "c1", number, spare=True)
        begun = [of["begun"] for of in tiles.values()]
        steps[name] = round((max(begun) - min(begun)) / (len(begun) - 1))
    for at, x in zip(moments, places):
        s.text(x, height * len(orders) + 4, at, "muted")
    alt = tr(
        "Cycles per step in one block: " + ", ".join(f"{n} {c}" for n, c in steps.items()) + ".",
        "一个线程块里每一步的周期数：" + "，".join(f"{n} {c}" for n, c in steps.items()) + "。",
    )
    caption = tr(
        "Recorded stamps of thread 0 of one block, cycles since the first tile's loads were issued; a number is a tile. "
        "'On its way' ends where the thread knows that the tile is there, which for early loads is only when it asks.",
        "一个线程块中 0 号线程的实测时间戳，横轴是从请求第一个分块算起的周期数，数字是分块编号。“在路上”画到线程得知"
        "分块已到为止；提前读取时，线程去查看才知道。",
    )
    return figure(s, alt=alt, caption=caption)
