"""The drawing on the landing page and, as a file of its own, in the README."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr

_TILE, _GAP, _PAD = 26, 7, 3


def waves(sms: int = 132, per_sm: int = 4, blocks: int = 600, columns: int = 12) -> str:
    """Draw a grid of `blocks` on a GPU of `sms` multiprocessors that hold `per_sm` blocks at a time.

    A square is an SM, a cell in it a place for a block (`per_sm` is 1, 4 or 9). Blocks go round the
    SMs in order; the cells that a block of the last wave occupies are drawn strong.
    """
    places = sms * per_sm
    full, tail = divmod(blocks, places)
    busy = 100 * blocks / (places * (full + (tail > 0)))
    alt = tr(
        f"{sms} squares, one per SM, each with {per_sm} places for a block. {tail} of the {places} "
        "places are drawn strong: only they have work in the last wave.",
        f"{sms} 个方块，每个代表一个 SM，各有 {per_sm} 个线程块的位置。{places} 个位置中有 {tail} 个"
        "颜色较深：最后一波里只有它们有活可干。",
    )
    caption = tr(
        f"{blocks} blocks on {sms} SMs, {per_sm} at a time: {full} full wave and a tail of {tail}. "
        f"If all blocks take equally long, {busy:.0f}% of the places are busy on average.",
        f"{blocks} 个线程块放到 {sms} 个 SM 上，每个 SM 同时容纳 {per_sm} 个：{full} 个整波，外加 {tail} 块的"
        f"尾巴。若每块耗时相同，平均只有 {busy:.0f}% 的位置在干活。",
    )
    return figure(drawing(sms, per_sm, blocks, columns), alt=alt, caption=caption)


def drawing(sms: int, per_sm: int, blocks: int, columns: int) -> Svg:
    """Return the drawing itself; parameters as in `waves`."""
    side = round(per_sm**0.5)
    if side * side != per_sm:
        raise ValueError(f"per_sm={per_sm} places do not fill a square")
    rows = -(-sms // columns)
    step = _TILE + _GAP
    cell = (_TILE - _PAD * (side + 1)) / side
    tail = blocks % (sms * per_sm)
    s = Svg(columns * step - _GAP + 2, rows * step - _GAP + 2)
    paths: dict[str, list[str]] = {"c0": [], "c1": [], "c1 solid": []}
    for sm in range(sms):
        x, y = 1 + sm % columns * step, 1 + sm // columns * step
        paths["c0"].append(f"M{x} {y}h{_TILE}v{_TILE}h-{_TILE}z")
        for place in range(per_sm):
            cx = x + _PAD + place % side * (cell + _PAD)
            cy = y + _PAD + place // side * (cell + _PAD)
            last = place * sms + sm < tail  # blocks go round the SMs: place 0 of each comes first
            paths["c1 solid" if last else "c1"].append(
                f"M{cx:g} {cy:g}h{cell:g}v{cell:g}h-{cell:g}z"
            )
    for cls, d in paths.items():  # one path per color: five hundred elements would weigh too much
        s.raw(f'<path class="fill {cls}" d="{"".join(d)}"/>')
    return s
