"""Drawings of the pipeline: who waits for which barrier, and the steps of a ring on a time axis."""

from cudatut.site.drawing import Grid, Lanes, Svg, figure, tr


def barriers(stages: int = 3) -> str:
    """Producer and consumer with the ring of stages between them, and the barriers of one stage."""
    s = Svg(700, 216)
    for x, cls, name, who, waits in (
        (10, "c2", tr("producer", "生产者"), tr("one thread", "一个线程"), "empty"),
        (560, "c1", tr("consumer", "消费者"), tr("a warpgroup", "一个线程束组"), "full"),
    ):
        s.rect(x, 60, 130, 90, cls, name).text(x + 65, 172, who, "muted")
        s.text(x + 65, 50, tr(f"waits for {waits}", f"等 {waits}"), "muted")
    width = 270 / stages
    names = [("c3", tr(f"stage {i}", f"缓冲区 {i}")) for i in range(stages)]
    Grid(s, 215, 76, width, 64, gap=6, rx=3).row(0, names)
    s.arrow(146, 92, 209, 92, "accent", tr("copies", "复制"))
    s.arrow(488, 92, 554, 92, "accent", tr("reads", "读取"))
    s.text(350, 30, tr("full: announced bytes have come", "full：登记的字节已到齐"))
    s.arrow(350, 40, 350, 70).arrow(350, 176, 350, 140)
    s.text(350, 196, tr("empty: the products that read it have ended", "empty：读它的乘法已完成"))
    alt = tr(
        f"A producer copies into a ring of {stages} stages, from which a consumer reads. Each stage has a barrier full, for which the "
        "consumer waits, and a barrier empty, for which the producer waits.",
        f"生产者把数据复制进由 {stages} 个缓冲区组成的环形缓冲区，消费者从中读取。每个缓冲区有两个屏障：消费者等 full，生产者等 empty。",
    )
    caption = tr(
        "Two barriers for each stage. The TMA completes `full` with the last of the announced bytes; the consumer arrives at `empty` when "
        "the products that read the stage have ended.",
        "每个缓冲区有两个屏障。登记的字节全部到齐时，TMA 使 `full` 完成；读这个缓冲区的乘法结束后，消费者在 `empty` 上到达。",
    )
    return figure(s, alt=alt, caption=caption)


def ring(latency: int = 1000, multiply: int = 512, stages: int = 3, steps: int = 6) -> str:
    """The copies and products of a ring as they follow from the rule, on one time axis."""
    free, asked, came, ended = [0.0] * stages, [], [], []
    busy = 0.0
    for step in range(steps):
        asked.append(free[step % stages])
        came.append(asked[-1] + latency)
        start = max(came[-1], busy)
        busy = start + multiply
        ended.append(busy)
        free[step % stages] = busy
    left, top, height = 92, 30, 26
    s, unit = Svg(left + 600, top + (stages + 1) * (height + 8) + 28), 590 / ended[-1]
    lanes = Lanes(s, left, top, unit, height + 8, gap=(2, 8))
    for i in range(stages):
        lanes.named(i, 4, tr(f"stage {i}", f"缓冲区 {i}"), "")
    lanes.named(stages, 4, tr("products", "乘法"), "")
    for step in range(steps):
        lanes.bar(step % stages, asked[step], asked[step] + latency, "c2", step)
        lanes.bar(stages, ended[step] - multiply, ended[step], "c1", step)
    lengths = tr(
        f"copy: {latency} cycles, product: {multiply} cycles",
        f"复制 {latency} 周期，乘法 {multiply} 周期",
    )
    s.text_from(left, top + stages * (height + 8) + height + 20, lengths, "muted")
    alt = tr(
        f"A ring of {stages} stages: copies of {latency} cycles overlap with products of {multiply} cycles; step {steps - 1} ends after "
        f"{ended[-1]:.0f} cycles.",
        f"{stages} 个阶段的流水线：每次 {latency} 周期的复制与每次 {multiply} 周期的乘法重叠，第 {steps - 1} 步在 {ended[-1]:.0f} 周期后结束。",
    )
    caption = tr(
        f"{stages} stages, drawn from the rule: a stage is copied again as soon as its products have ended. The number is the step.",
        f"按公式画出的 {stages} 阶段流水线：一个阶段的乘法一结束，缓冲区就立即用于下一次复制。数字是步号。",
    )
    return figure(s, alt=alt, caption=caption)
