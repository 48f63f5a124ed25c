"""Figures of the chapter on attention as it is written: the matrices and the launches between them, in proportion."""

from cudatut.site.drawing import Svg, figure, tr


def launches(n: int = 512, d: int = 64, score_bytes: int = 4, weight_bytes: int = 2) -> str:
    """One head: q, k and v beside the matrices of all pairs, drawn to scale; arrows are launches."""
    side = 150
    thin = side * d / n
    top = 56
    s = Svg(712, 300)

    def kib(count: int) -> str:
        return f"{count / 1024:,.0f} KiB"

    def matrix(x: float, w: float, tint: str, name: str, nbytes: int) -> None:
        s.rect(x, top, w, side, tint, rx=0)
        s.text(x + w / 2, top + side + 24, name, "bold", size=13)
        s.text(x + w / 2, top + side + 42, kib(nbytes), "muted", size=12)

    small, pairs, middle = n * d * 2, n * n, top + side / 2
    x_q, x_k, x_s, x_p, x_o = 24, 82, 208, 436, 672
    matrix(x_q, thin, "c1", "q", small)
    matrix(x_k, thin, "c1", "k", small)
    matrix(x_s, side, "c2", tr("scores, fp32", "分数，fp32"), pairs * score_bytes)
    matrix(x_p, side, "c4", tr("weights, bf16", "权重，bf16"), pairs * weight_bytes)
    matrix(x_o, thin, "c1", tr("out", "结果"), small)
    s.arrow(x_k + thin + 8, middle, x_s - 8, middle, "accent", "q kᵀ", 12)
    s.arrow(x_s + side + 8, middle, x_p - 8, middle, "accent", "softmax", 12)
    s.arrow(x_p + side + 8, middle, x_o - 8, middle, "accent", "· v", 12)
    # The diagonal: a token sees the keys up to its own.
    for x, above in ((x_s, tr("hidden", "看不见")), (x_p, "0")):
        s.line(x, top, x + side, top + side, "bold")
        s.text_to(x + side - 8, top + 22, above, "muted", 12)
    written = pairs * (score_bytes + weight_bytes)
    passed = tr(
        f"written and read again between the launches: 2 × {kib(written)}",
        f"各次启动之间写入又读出：2 × {kib(written)}",
    )
    s.text_from(24, 288, passed, "warn", 13)
    head = tr(f"one head: {n} tokens, {d} numbers each", f"一个头：{n} 个词元，每个 {d} 个数")
    s.text_from(24, 28, head, "muted", 12)
    ratio = written * 2 / (4 * small)
    alt = tr(
        f"q and k are {n} x {d}; the scores are {n} x {n} in fp32, {kib(pairs * score_bytes)}, the weights {n} x {n} in bf16, "
        f"{kib(pairs * weight_bytes)}; the result is {n} x {d} again. Three launches lead from one to the next. The part above the diagonal "
        "is hidden by the causal mask.",
        f"q 和 k 是 {n} x {d}；分数是 fp32 的 {n} x {n}，{kib(pairs * score_bytes)}；权重是 bf16 的 {n} x {n}，{kib(pairs * weight_bytes)}；"
        f"结果又是 {n} x {d}。三次启动依次算出分数、权重和结果。对角线以上的部分被因果掩码遮住。",
    )
    caption = tr(
        f"The matrices of one head, in proportion. v is as large as q and k. Between the launches {ratio:.0f} times as many "
        f"bytes pass through the memory as q, k, v and the result have; with twice as many tokens, {2 * ratio:.0f} times as many.",
        f"一个头的各个矩阵，按比例画出。v 与 q、k 一样大。三次启动之间经过显存的字节数，是 q、k、v 和结果总字节数的 {ratio:.0f} 倍；"
        f"词元数加倍，就是 {2 * ratio:.0f} 倍。",
    )
    return figure(s, alt=alt, caption=caption)
