"""Drawings of one step of the engine, and of guessed tokens."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def step(requests: int = 256, prefill: int = 3, chunk: int = 200) -> str:
    """What the host and the GPU do in a step of so many requests, some with a piece of a prompt."""
    tokens = requests - prefill + prefill * chunk
    s = Svg(720, 226)
    s.text_from(4, 62, tr("host", "主机"), "bold").text_from(4, 160, "GPU", "bold")
    for x, y, wide, cls, words in (
        (60, 30, 112, "c1", tr("schedule:\nwho, which tokens", "调度：\n给谁算哪些词元")),
        (180, 30, 112, "c1", tr("assemble:\nthe arrays", "准备：\n各个数组")),
        (300, 30, 92, "c2", tr("copies,\ntwo launches", "复制，\n两次启动")),
        (586, 30, 128, "c1", tr("finish: tokens to\ntheir requests", "收尾：词元\n交给各请求")),
        (346, 128, 128, "c3", tr("all layers:\na CUDA graph", "所有层：\n一个 CUDA graph")),
        (482, 128, 92, "c4", tr("sample:\na second graph", "采样：\n第二个 graph")),
    ):
        s.rect(x, y, wide, 58, cls, words, size=12)
    s.arrow(172, 59, 180, 59).arrow(292, 59, 300, 59).arrow(366, 88, 380, 128)
    s.arrow(474, 157, 482, 157).arrow(560, 128, 600, 88)
    counts = tr(
        f"{requests} requests, {prefill} of them with {chunk} tokens of a prompt: {tokens} tokens, {requests} logits rows at most",
        f"{requests} 个请求，其中 {prefill} 个各有 {chunk} 个提示词元：共 {tokens} 个词元，至多 {requests} 行 logits",
    )
    s.text(360, 214, counts, "muted", size=12)
    alt = tr(
        "The host schedules and assembles arrays, copies them and starts two CUDA graphs. On the GPU, the first computes all layers "
        "and the second draws a token for each request. The host hands the tokens to their requests.",
        "主机调度、准备数组，复制数组，启动两个 CUDA graph；在 GPU 上，前一个计算所有层，后一个给每个请求采样一个词元；主机把词元交给各个请求。",
    )
    caption = tr(
        f"A step of the engine. {requests - prefill} requests have one token, {prefill} have {chunk}; the same launches compute all of them.",
        f"引擎的一步。{requests - prefill} 个请求各有一个词元，{prefill} 个各有 {chunk} 个；全部词元由同一批启动算完。",
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
    s = Svg(720, 172)
    said = Grid(s, 150, 20, 104, 70, gap=(10, 32), rx=4)
    said.named(0, 4, tr("computed in one step", "一步里计算"), "")
    said.named(1, 4, tr("the model says", "模型采样"), "")
    good = ["c0", *["c3"] * right, *["hollow dash warn"] * (len(drafts) - right)]
    said.row(0, zip(good, ("brown", *drafts)))
    for i, word in enumerate(sampled):
        x = said.center(0, i)[0]
        s.arrow(x, 60, x, 90, "muted")
        said.box(1, i, "c1" if i <= right else "hollow dash muted", word)
    kept = ", ".join(sampled[: right + 1])
    s.text_from(150, 156, tr(f"kept: {kept}", f"保留：{kept}"), "accent", 13)
    alt = tr(
        f"The tokens brown, {', '.join(drafts)} are computed in one step; the model gives {', '.join(sampled)} after them. "
        f"{right} guesses were right, so {right + 1} tokens are kept: {kept}.",
        f"brown、{'、'.join(drafts)} 在一步里计算，模型在这些词元之后依次采样得到 {'、'.join(sampled)}。猜对 {right} 个，于是保留 {right + 1} 个词元：{kept}。",
    )
    caption = tr(
        f"{len(drafts)} guesses after 'brown'. {right} of them are what the model says, so {right + 1} tokens come out of one step.",
        f"在 brown 之后猜了 {len(drafts)} 个词元，其中 {right} 个与模型采样的相同，于是一步得到 {right + 1} 个词元。",
    )
    return figure(s, alt=alt, caption=caption)
