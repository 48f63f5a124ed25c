"""Drawings of the way of a request, and of the schedule that the chapter's program makes."""

from cudatut.site import references
from cudatut.site.drawing import Grid, Svg, figure, legend, tr

EXAMPLE = "llm/scheduling"


def way() -> str:
    """From text to text: what a request is at each place, and how it gets from one to the next."""
    s = Svg(720, 236)
    top, high = 62, 58
    places = (
        (6, 104, "c0", tr("text\nof a user", "用户的\n文本")),
        (176, 104, "c1", tr("tokens", "词元")),
        (346, 124, "c2", tr("waiting,\nin order", "等待队列，\n按次序")),
        (546, 168, "c3", tr("running:\na part of every step", "运行中：\n每步都参加")),
    )
    for x, wide, cls, words in places:
        s.rect(x, top, wide, high, cls, words)
    y = top + high / 2
    s.arrow(110, y, 176, y, text=tr("template", "模板"), size=12)
    s.arrow(280, y, 346, y, text=tr("add", "加入"), size=12)
    s.arrow(470, y - 12, 546, y - 12, text=tr("admit", "接纳"), size=12)
    s.arrow(546, y + 14, 470, y + 14, "warn")
    s.text(508, y + 48, tr("preempt", "抢占"), "warn", size=12)
    s.arrow(312, y, 312, 180, "warn")
    s.text(312, 200, tr("refused, with the reason", "拒绝，并说明原因"), "warn", size=12)
    s.arrow(596, top + high, 596, 180)
    s.text(586, 200, tr("finished:\nits text has been shown", "结束：\n文本已经输出"), "", size=12)
    s.arrow(684, top + high, 684, 180, "muted")
    s.text(684, 200, tr("cancelled", "取消"), "muted", size=12)
    s.text(630, 30, tr("holds blocks", "占用 KV 块"), "accent", size=12)
    s.line(546, 40, 714, 40, "accent")
    alt = tr(
        "A user's text goes through the template and becomes tokens. It is refused with a reason, or waits in order. An "
        "admitted request runs: it is a part of every step and holds blocks. From there it is preempted and waits again, "
        "or it is finished, or cancelled.",
        "用户的文本套上模板，转换成词元；放不下就拒绝并说明原因，否则按次序等待。请求被接纳后进入运行状态，每一步都参加计算，并占用 KV 块。"
        "此后可能被抢占而重新等待，也可能结束或取消。",
    )
    caption = tr(
        "The states of a request. Only a request that runs holds blocks of the KV cache.",
        "请求的各个状态。只有运行中的请求占用 KV 缓存的块。",
    )
    return figure(s, alt=alt, caption=caption)


def _cells() -> dict[str, list[str | None]]:
    """What each request does in each step, from the recording."""
    return {name: list(row.values()) for name, row in references.table(EXAMPLE, "setup").items()}


def schedule(prompts: tuple[int, ...] = (5, 10, 4)) -> str:
    """The recorded schedule; prompts: tokens of each request's prompt, which tell prefill from decoding."""
    return draw(_cells(), prompts)


def draw(cells: dict[str, list[str | None]], prompts: tuple[int, ...]) -> str:
    """A row for each request, a column for each step."""
    steps = len(next(iter(cells.values())))
    left, wide, row = 60, (714 - 60) / steps, 50
    s = Svg(720, 74 + row * len(cells))
    boxes = Grid(s, left + 2, 26, wide, row, gap=(4, row - 38), rx=4, size=13)
    boxes.heads(range(1, steps + 1), size=12)
    s.text_from(4, 16, tr("step", "步"), "muted", 12)
    told = []
    for k, (name, prompt, found) in enumerate(zip(cells, prompts, cells.values())):
        known, last = -1, max(i for i, cell in enumerate(found) if cell)
        boxes.named(k, 4, name, "bold")
        words = []
        for i, cell in enumerate(found[: last + 1]):
            if not cell:
                boxes.box(k, i, "hollow dash muted")
                words.append(tr("waits", "等待"))
            elif cell == "preempted":
                boxes.box(k, i, "hollow dash warn")
                s.text(
                    boxes.center(k, i)[0],
                    boxes.center(k, i)[1] + 5,
                    tr("out", "让出"),
                    "warn",
                    size=12,
                )
                words.append(tr("preempted", "被抢占"))
            else:
                first, stop = (int(number) for number in cell.split(" to "))
                cls = "c5" if first <= known else "c1" if stop < prompt else "c3"
                words.append(f"{first}" if first == stop else f"{first}–{stop}")
                boxes.box(k, i, cls, words[-1])
                known = max(known, stop)
        told.append(f"{name}: {', '.join(words)}")
    entries = (
        ("c1", tr("prompt", "提示")),
        ("c3", tr("one token a step", "每步一个词元")),
        ("c5", tr("computed again", "重新计算")),
        ("hollow dash muted", tr("waits", "等待")),
    )
    y = 36 + row * len(cells)
    legend(s, left, y, entries, step=165, size=12, wide=22, high=18, cls="muted")
    alt = tr("Tokens computed in each step. ", "每一步计算的词元。") + "; ".join(told)
    caption = tr(
        "The schedule of the program, from its recording: positions of the tokens that each request computes in each step. "
        "A step has at most eight tokens.",
        "程序的调度过程，取自运行记录：每个请求在每一步计算哪些位置的词元。一步最多算八个词元。",
    )
    return figure(s, alt=alt, caption=caption)
