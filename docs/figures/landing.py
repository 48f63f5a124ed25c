"""The drawing on the landing page: one worker against many, for someone who knows no term yet."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr

_CELL, _GAP, _WORKER = 28, 5, 5  # so that twelve columns fit a telephone


def workers(n: int = 24, columns: int = 12, sms: int = 132, per_sm: int = 2048) -> str:
    """Draw `n` additions done by one worker, and by as many workers as there are additions.

    Each square is one addition; the number in it is the step in which it is done. The caption says for how many
    workers a GPU of `sms` multiprocessors with `per_sm` threads each has room.
    """
    alt = tr(
        f"Two rows of pictures of {n} squares. Above, one worker: the squares are numbered 1 to {n}. "
        f"Below, {n} workers, one over each square: every square has the number 1.",
        f"上下两组，各有 {n} 个方格。上面只有一个工人，方格依次编号 1 到 {n}；下面有 {n} 个工人，"
        "每个方格上方一个，所有方格的编号都是 1。",
    )
    caption = tr(
        f"Two lists of {n} numbers are added. The number in a square is the step in which that addition is done. "
        f"The GPU on which this book was measured has room for {sms * per_sm:,} such workers.",
        f"把两列各 {n} 个数对应相加。方格里的数字表示这次加法在第几步完成。"
        f"本书测量所用的 GPU 可以同时容纳 {sms * per_sm:,} 个这样的工人。",
    )
    return figure(drawing(n, columns), alt=alt, caption=caption)


def drawing(n: int, columns: int) -> Svg:
    """Return the drawing itself; parameters as in `workers`."""
    rows = -(-n // columns)
    pitch = _CELL + _GAP
    lines = _CELL + _GAP + 4 * _WORKER  # a row of squares with its workers above
    panel = 30 + rows * lines
    s = Svg(columns * pitch - _GAP + 2, 2 * panel + 14)
    for number, (many, title) in enumerate(
        (
            (False, tr(f"One worker: {n} steps", f"一个工人：{n} 步")),
            (True, tr(f"{n} workers: 1 step", f"{n} 个工人：1 步")),
        )
    ):
        top = number * (panel + 14)
        s.text(1, top + 16, title, "bold", "start")
        for i in range(n):
            x, y = 1 + i % columns * pitch, top + 30 + i // columns * lines
            if many or i == 0:
                s.circle(x + _CELL / 2, y + _WORKER, _WORKER, "c2 solid")
            if not many and i % columns == columns - 1:
                start = x - (columns - 1) * pitch + _CELL / 2 + (2 * _WORKER if i < columns else -6)
                s.arrow(start, y + _WORKER, x + _CELL / 2 + 6, y + _WORKER, "c2")
            s.rect(x, y + 3 * _WORKER, _CELL, _CELL, "c1", text=1 if many else i + 1, size=13)
    return s
