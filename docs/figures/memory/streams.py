"""Drawings of streams: three queues with an event between two of them, and what a trace saw of five ways."""

from cudatut.site import references
from cudatut.site.drawing import Lanes, Svg, figure, hue, tr

EXAMPLE = "memory/streams"
# The titles of the tables of cell 'timelines', in their order.
WAYS = (
    "one stream",
    "three streams",
    "c waits for an event of a",
    "the default stream between",
    "the same, a and c non-blocking",
)


def queues(names: tuple[str, ...] = ("a", "b", "c"), waits: int = 2, on: int = 0) -> str:
    """Streams as queues, the next command on the left: stream `waits` waits for an event of stream `on`."""
    wide, high, left, top = 140, 44, 92, 30
    pitch = 58
    s = Svg(left + 2 * wide + 20, top + pitch * len(names) + 10)
    s.text_from(left, 18, tr("first", "先"), "muted")
    s.text_to(left + 2 * wide - 8, 18, tr("last", "后"), "muted")
    for row, name in enumerate(names):
        y = top + pitch * row
        s.text_to(left - 12, y + 27, tr(f"stream {name}", f"流 {name}"), "bold")
        kernel = f"kernel {name.upper()}"
        boxes = [(hue(row), kernel)]
        if row == on:
            boxes.append(("c0", tr("record event", "记录事件")))
        if row == waits:
            boxes.insert(0, ("c0", tr("wait for event", "等待事件")))
        for place, (cls, words) in enumerate(boxes):
            s.rect(left + place * wide, y, wide - 8, high, cls, words, rx=3)
    x, y = left + 1.5 * wide, top + pitch * on + high
    s.arrow(x, y + 2, left + 0.9 * wide, top + pitch * waits - 3)
    alt = tr(
        f"Queues of the streams {', '.join(names)}. Stream {names[on]}: a kernel, then an event is recorded. "
        f"Stream {names[waits]}: it waits for this event, then comes its kernel.",
        f"流 {'、'.join(names)} 的队列。流 {names[on]}：先是一个 kernel，然后记录一个事件。流 {names[waits]}：先等待这个事件，"
        "然后才是它的 kernel。",
    )
    caption = tr(
        f"Each stream is a queue. Without the arrow, the kernels of all {len(names)} may run in any order, also at the same time.",
        f"每个流是一个队列。没有这个箭头的话，这 {len(names)} 个流的 kernel 可以按任何次序执行，也可以同时执行。",
    )
    return figure(s, alt=alt, caption=caption)


def timelines() -> str:
    """What the trace saw of the five ways: a lane for each stream, a bar for each kernel, in milliseconds."""
    runs = [references.table(EXAMPLE, "timelines", number) for number in range(len(WAYS))]
    last = max(kernel["end"] for run in runs for kernel in run.values())
    left, lane, gap = 110, 24, 40
    rows = [list(dict.fromkeys(kernel["stream"] for kernel in run.values())) for run in runs]
    height = sum(gap + lane * len(streams) for streams in rows)
    s, unit, top, told = Svg(720, height + 26), 590 / last, 0.0, []
    lanes = None
    for way, run, streams in zip(WAYS, runs, rows):
        s.text_from(4, top + 22, references.label(way), "bold")
        lanes = Lanes(s, left, top + 32, unit, lane, gap=(0, 4))
        for row, stream in enumerate(streams):
            lanes.axis(row, stream, 710, x=16)
        for number, (name, kernel) in enumerate(run.items()):
            words = name.split()[-1]  # its number
            row = streams.index(kernel["stream"])
            lanes.bar(row, kernel["begin"], kernel["end"], hue(number), words, spare=True)
        told.append(f"{references.label(way)}: {max(k['end'] for k in run.values()) / 1e3:.1f} ms")
        top += gap + lane * len(streams)
    for ms in range(int(last / 1e3) + 1):
        if lanes is not None:
            s.text(lanes.when(1e3 * ms), height + 18, f"{ms} ms", "muted")
    alt = tr("From the trace: ", "取自 trace：") + "; ".join(told)
    caption = tr(
        "Kernels as CUPTI saw them, one lane for each stream; time begins with the first kernel.",
        "CUPTI 看到的各个 kernel，每个流一行；从第一个 kernel 开始计时。",
    )
    return figure(s, alt=alt, caption=caption)
