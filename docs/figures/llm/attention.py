"""Figures of the chapter on attention as it is written: the matrices and the launches between them, in proportion."""

from __future__ import annotations

from cudatut.site.svg import Svg, figure, tr


def launches(n: int = 512, d: int = 64, score_bytes: int = 4, weight_bytes: int = 2) -> str:
    """One head: q, k and v beside the matrices of all pairs, drawn to scale; arrows are launches."""
    side = 150
    thin = side * d / n
    top = 56
    s = Svg(712, 300)

    def kib(count: int) -> str:
        return f"{count / 1024:,.0f} KiB"

    def matrix(x: float, y: float, w: float, h: float, tint: str, name: str, nbytes: int) -> None:
        s.rect(x, y, w, h, tint, rx=0)
        s.text(x + w / 2, top + side + 24, name, "bold", size=13)
        s.text(x + w / 2, top + side + 42, kib(nbytes), "muted", size=12)

    small, pairs = n * d * 2, n * n
    x_q, x_k = 24.0, 62.0
    matrix(x_q, top, thin, side, "c1", "q", small)
    matrix(x_k + 20, top, thin, side, "c1", "k", small)
    x_s = 208.0
    matrix(x_s, top, side, side, "c2", tr("scores, fp32", "分数，fp32"), pairs * score_bytes)
    x_p = 436.0
    matrix(x_p, top, side, side, "c4", tr("weights, bf16", "权重，bf16"), pairs * weight_bytes)
    x_o = 672.0
    matrix(x_o, top, thin, side, "c1", tr("out", "结果"), small)
    middle = top + side / 2
    for x1, x2, word in (
        (x_k + 20 + thin + 8, x_s - 8, tr("q kᵀ", "q kᵀ")),
        (x_s + side + 8, x_p - 8, "softmax"),
        (x_p + side + 8, x_o - 8, tr("· v", "· v")),
    ):
        s.arrow(x1, middle, x2, middle, "accent", word, 12)
    # The diagonal: a token sees the keys up to its own.
    for x in (x_s, x_p):
        s.line(x, top, x + side, top + side, "bold")
    s.text(x_s + side - 8, top + 22, tr("hidden", "看不见"), "muted", "end", 12)
    s.text(x_p + side - 8, top + 22, "0", "muted", "end", 12)
    written = pairs * (score_bytes + weight_bytes)
    s.text(
        24, 288,
        tr(
            f"written and read again between the launches: 2 × {kib(written)}",
            f"各次启动之间写入又读出：2 × {kib(written)}",
        ),
        "warn", "start", 13,
    )  # fmt: skip
    s.text(
        24,
        28,
        tr(f"one head: {n} tokens, {d} numbers each", f"一个头：{n} 个词元，每个 {d} 个数"),
        "muted",
        "start",
        12,
    )
    ratio = written * 2 / (4 * small)
    alt = tr(
        f"q and k are {n} x {d}; the scores are {n} x {n} in fp32, {kib(pairs * score_bytes)}, the weights {n} x {n} in bf16, "
        f"{kib(pairs * weight_bytes)}; the result is {n} x {d} again. Three launches lead from one to the next. The part above the diagonal "
        "is hidden by the causal mask.",
        f"q 和 k 是 {n} x {d}；分数是 fp32 的 {n} x {n}，{kib(pairs * score_bytes)}；权重是 bf16 的 {n} x {n}，{kib(pairs * weight_bytes)}；"
        f"结果又是 {n} x {d}。三次启动依次得到它们。对角线以上的部分被因果掩码遮住。",
    )
    caption = tr(
        f"The matrices of one head, in proportion. v is as large as q and k. Between the launches {ratio:.0f} times as many "
        f"bytes pass through the memory as q, k, v and the result have; with twice as many tokens, {2 * ratio:.0f} times as many.",
        f"一个头的各个矩阵，按比例画出。v 与 q、k 一样大。三次启动之间经过显存的字节数，是 q、k、v 和结果总字节数的 {ratio:.0f} 倍；"
        f"词元数加倍，就是 {2 * ratio:.0f} 倍。",
    )
    return figure(s, alt=alt, caption=caption)
