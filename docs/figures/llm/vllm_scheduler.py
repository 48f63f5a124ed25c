"""Drawings of the chapter on vLLM's scheduler: the queues of its two engines."""

from cudatut.site.drawing import Svg, figure, tr

WIDE, HIGH = 150, 46


def queues() -> str:
    """Where a request waits and runs: V0 in version 0.6.3 on the left, V1 in version 0.33.0 on the right."""
    s = Svg(720, 330)
    left = _engine(s, 0, tr("V0, version 0.6.3", "V0，0.6.3 版"))
    right = _engine(s, 370, tr("V1, version 0.33.0", "V1，0.33.0 版"))
    waits, runs, saved = tr("waiting", "等待"), tr("running", "运行"), tr("swapped", "换出")
    s.rect(left, 66, WIDE, HIGH, "c1", waits).rect(left, 240, WIDE, HIGH, "c3", runs)
    s.rect(left + 190, 153, 130, HIGH, "c5", saved)
    s.rect(right, 66, WIDE, HIGH, "c1", waits).rect(right, 240, WIDE, HIGH, "c3", runs)
    admitted = tr("admitted:\nits whole prompt fits", "接纳：\n放得下整段提示")
    preempted = tr("preempted:\ncomputed again", "抢占：\n重新计算")
    for x in (left, right):
        s.arrow(x + 22, 112, x + 22, 240).arrow(x + 128, 240, x + 128, 112)
    s.text_from(left + 28, 150, admitted, "muted", 11)
    s.text_from(left + 28, 200, preempted, "muted", 11)
    s.text_from(right + 28, 150, admitted, "muted", 11)
    s.text_from(right + 28, 200, preempted, "muted", 11)
    s.arrow(left + WIDE, 254, left + 240, 199, "c5").arrow(left + 290, 199, left + WIDE, 276, "c5")
    s.text_from(
        left + 196,
        284,
        tr("several answers:\nto the host and back", "有多个回答：\n存到主机再取回"),
        "muted",
        11,
    )
    s.arrow(left + 75, 40, left + 75, 66).arrow(right + 75, 40, right + 75, 66)
    s.rect(right + 190, 66, 130, HIGH, "c2", tr("waiting,\nhas blocks", "等待，\n已有块"), size=12)
    s.arrow(right + WIDE, 89, right + 190, 89, "c2")
    s.arrow(right + 255, 112, right + WIDE, 252, "c2")
    s.text_from(
        right + 214, 200, tr("its blocks come\nfrom elsewhere", "块的内容\n来自别处"), "muted", 11
    )
    alt = tr(
        "V0 has three queues: waiting, running, and swapped. A request is admitted when its whole prompt fits. One that is preempted "
        "goes back to waiting, or, with several answers, to swapped. V1 has waiting and running, and a queue of those that wait and "
        "have blocks already.",
        "V0 有三个队列：等待、运行、换出。放得下整段提示才接纳。被抢占的请求回到等待队列，有多个回答的则进入换出队列。"
        "V1 有等待和运行两个队列，另有一个队列存放等待中但已有块的请求。",
    )
    caption = tr(
        "The queues of both engines, with their default rules.",
        "两代引擎的队列，按默认规则。",
    )
    return figure(s, alt=alt, caption=caption)


def _engine(s: Svg, x: float, name: str) -> float:
    """A frame with a name; where its boxes begin."""
    s.rect(x, 6, 346, 318, "hollow muted")
    s.text_from(x + 14, 28, name, "bold", 13)
    return x + 14
