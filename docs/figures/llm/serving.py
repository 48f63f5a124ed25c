"""Drawings of one step of the engine, and of guessed tokens."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr


def step(requests: int = 256, prefill: int = 3, chunk: int = 200) -> str:
    """What the host and the GPU do in a step of so many requests, some with a piece of a prompt."""
    tokens = requests - prefill + prefill * chunk
    s = Svg(720, 226)
    s.text(4, 62, tr("host", "主机"), "bold", "start")
    s.text(4, 160, "GPU", "bold", "start")
    host = (
        (60, 112, "c1", tr("schedule:\nwho, which tokens", "调度：\n谁，哪些词元")),
        (180, 112, "c1", tr("assemble:\nthe arrays", "装配：\n各个数组")),
        (300, 92, "c2", tr("copies,\ntwo launches", "复制，\n两次启动")),
        (586, 128, "c1", tr("finish: tokens to\ntheir requests", "收尾：词元\n交给各请求")),
    )
    for x, wide, cls, words in host:
        s.rect(x, 30, wide, 58, cls, words, size=12)
    gpu = (
        (346, 128, "c3", tr("all layers:\na CUDA graph", "所有层：\n一个 CUDA graph")),
        (482, 92, "c4", tr("sample:\na second graph", "采样：\n第二个图")),
    )
    for x, wide, cls, words in gpu:
        s.rect(x, 128, wide, 58, cls, words, size=12)
    s.arrow(172, 59, 180, 59)
    s.arrow(292, 59, 300, 59)
    s.arrow(366, 88, 380, 128)
    s.arrow(474, 157, 482, 157)
    s.arrow(560, 128, 600, 88)
    s.text(
        360,
        214,
        tr(
            f"{requests} requests, {prefill} of them with {chunk} tokens of a prompt: {tokens} tokens, {requests} logits rows at most",
            f"{requests} 个请求，其中 {prefill} 个各有 {chunk} 个提示词元：共 {tokens} 个词元，至多 {requests} 行 logits",
        ),
        "muted",
        size=12,
    )
    alt = tr(
        "The host schedules and assembles arrays, copies them and starts two CUDA graphs. On the GPU, the first computes all layers "
        "and the second draws a token for each request. The host hands the tokens to their requests.",
        "主机调度、装配数组，复制数组，启动两个 CUDA graph；在 GPU 上，前一个计算所有层，后一个给每个请求抽取一个词元；主机把词元交给各个请求。",
    )
    caption = tr(
        f"A step of the engine. {requests - prefill} requests have one token, {prefill} have {chunk}; the same launches compute all of them.",
        f"引擎的一步。{requests - prefill} 个请求各有一个词元，{prefill} 个各有 {chunk} 个；同一批启动计算全部词元。",
    )
    return figure(s, alt=alt, caption=caption)


def guess(
    drafts: tuple[str, ...] = ("fox", "jumps", "over", "a"),
    sampled: tuple[str, ...] = ("fox", "jumps", "over", "the", "small"),
) -> str:
    """Guessed tokens, what the model says after each, and what is kept of it."""
    right = 0
    while right < len(drafts) and drafts[right] == sampled[right]:
        right += 1
    left, wide = 150, 104
    s = Svg(720, 172)
    rows = ((20, tr("computed in one step", "一步里计算"), ("brown", *drafts)),)
    for y, name, words in rows:
        s.text(4, y + 24, name, "", "start", 13)
        for i, word in enumerate(words):
            cls = "c0" if i == 0 else "c3" if i <= right else "hollow dash warn"
            s.rect(left + wide * i, y, wide - 10, 38, cls, word)
    s.text(4, 114, tr("the model says", "模型给出"), "", "start", 13)
    for i, word in enumerate(sampled):
        x = left + wide * i
        s.arrow(x + (wide - 10) / 2, 60, x + (wide - 10) / 2, 90, "muted")
        cls = "c1" if i <= right else "hollow dash muted"
        s.rect(x, 90, wide - 10, 38, cls, word)
    kept = ", ".join(sampled[: right + 1])
    s.text(
        left,
        156,
        tr(f"kept: {kept}", f"保留：{kept}"),
        "accent",
        "start",
        13,
    )
    alt = tr(
        f"The tokens brown, {', '.join(drafts)} are computed in one step; the model gives {', '.join(sampled)} after them. "
        f"{right} guesses were right, so {right + 1} tokens are kept: {kept}.",
        f"brown、{'、'.join(drafts)} 在一步里计算，模型在它们之后依次给出 {'、'.join(sampled)}。猜对 {right} 个，于是保留 {right + 1} 个词元：{kept}。",
    )
    caption = tr(
        f"{len(drafts)} guesses after 'brown'. {right} of them are what the model says, so {right + 1} tokens come out of one step.",
        f"在 brown 之后猜了 {len(drafts)} 个词元，其中 {right} 个与模型给出的相同，于是一步得到 {right + 1} 个词元。",
    )
    return figure(s, alt=alt, caption=caption)
