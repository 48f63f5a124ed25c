"""Drawings of llm/vllm_kernel: (to write: what they show)."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr


def elements(threads: int = 8) -> str:
    """One element for each of `threads` threads. (to write: your own drawing)"""
    cell, left, top = 64, 70, 10
    s = Svg(left + cell * threads, 120)
    s.text(left - 10, top + 25, "x", "mono", "end")
    s.text(left - 10, top + 95, "out", "mono", "end")
    for thread in range(threads):
        x = left + cell * thread
        s.rect(x, top, cell - 8, 36, "c1", f"x[{thread}]", size=12)
        s.rect(x, top + 70, cell - 8, 36, "c2", f"out[{thread}]", size=12)
        s.arrow(x + cell / 2 - 4, top + 40, x + cell / 2 - 4, top + 68)
    alt = tr(
        f"{threads} threads, each of which copies one element of x to out.",
        f"{threads} 个线程，各自把 x 的一个元素复制到 out。",
    )
    return figure(s, alt=alt, caption=tr("One element for each thread.", "每个线程一个元素。"))
