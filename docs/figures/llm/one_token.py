"""Figures of the chapter on one token: the graph of the model, and a step of it under the roofline."""

from cudatut.site import references
from cudatut.site.drawing import Grid, Roofline, Svg, figure, tr


def graph(
    layers: int = 30,
    dim: int = 576,
    heads: int = 9,
    kv_heads: int = 3,
    head_dim: int = 64,
    ffn: int = 1536,
    vocab: int = 49152,
) -> str:
    """What happens to a token's vector: boxes with the sizes of their weights, in millions for all layers."""
    q, kv = heads * head_dim, kv_heads * head_dim

    def millions(numbers: int) -> str:
        return f"{numbers / 1e6:.1f} M"

    s = Svg(712, 470)
    box, high, first, second = 128, 46, 128, 262
    # Embedding, then the two halves of a layer as rows, then the logits.
    s.rect(14, 24, box, high, "c2", tr("embedding", "嵌入") + f"\n{vocab:,} × {dim}", size=12)
    s.text_from(160, 52, tr("the row of the token", "取词元对应的一行"), "muted", 12)
    s.arrow(14 + box / 2, 24 + high, 14 + box / 2, 124, "muted")
    s.rect(6, 92, 700, 282, "axis hollow", rx=8)
    s.text_to(696, 112, tr(f"one of {layers} layers", f"{layers} 层中的一层"), "bold", 13)

    def row(y: int, boxes: list[tuple[str, str, str]]) -> None:
        """Boxes of (words, words below, class), each with an arrow from the one before it."""
        gap, wide = 14, (684 + 14) / len(boxes)
        cells = Grid(s, 14, y, wide, high, gap=(gap, 0), rx=4, size=12)
        for i, (text, below, cls) in enumerate(boxes):
            cells.box(0, i, cls, text)
            x, middle = cells.center(0, i)
            s.text(x, y + high + 17, below, "muted", size=11)
            if i:
                x = cells.corner(0, i)[0]
                s.arrow(x - gap, middle, x, middle, "muted")

    norm = (tr("norm", "归一化"), f"{dim}", "c0")
    added = (tr("+ the vector\nbefore", "加上原来\n的向量"), "", "c0")
    qkv = tr("q, k, v\n", "q、k、v\n") + f"{q} + 2 × {kv}"
    output = tr("output\n", "输出\n") + f"{dim} × {q}"
    cached = tr(f"{heads} heads, KV cache", f"{heads} 个头，KV 缓存")
    attention_part = [
        norm,
        (qkv, millions(layers * dim * (q + 2 * kv)), "c1"),
        (tr("rotation\nof q and k", "q、k 的\n旋转"), tr("by position", "按位置"), "c0"),
        (tr("attention", "注意力"), cached, "c4"),
        (output, millions(layers * dim * q), "c1"),
        added,
    ]
    feed_forward_part = [
        norm,
        (f"gate, up\n2 × {ffn} × {dim}", millions(2 * layers * ffn * dim), "c1"),
        ("SiLU(gate)\n× up", tr("number by number", "逐个数相乘"), "c0"),
        (f"down\n{dim} × {ffn}", millions(layers * ffn * dim), "c1"),
        added,
    ]
    row(first, attention_part)
    row(second, feed_forward_part)
    # From the end of the first half to the beginning of the second.
    s.polyline([(641, first + high), (641, 228), (79, 228)], "muted")
    s.arrow(79, 228, 79, second, "muted")
    halves = tr("attention part above, feed-forward part below", "上为注意力部分，下为前馈部分")
    s.text(300, 222, halves, "muted", size=12)
    s.polyline([(637, second + high), (637, 352), (79, 352)], "muted")
    s.arrow(79, 352, 79, 402, "muted")
    s.rect(14, 402, box, high, "c0", norm[0], size=12).arrow(14 + box, 425, 186, 425, "muted")
    s.rect(186, 402, 168, high, "c2", f"logits\n{vocab:,} × {dim}", size=12)
    scores = tr(f"a score for each of {vocab:,} tokens", f"{vocab:,} 个词元各得一个分数")
    s.text_from(366, 430, scores, "muted", 12)
    weights = dim * (vocab + layers * (2 * q + 2 * kv + 3 * ffn + 2) + 1)
    alt = tr(
        f"The embedding gives the token a vector of {dim} numbers. {layers} layers change it. Each has an attention part: norm, "
        f"products for q, k and v, rotation by position, attention over the KV cache with {heads} heads, an output product, "
        "and the sum with the vector before; and a feed-forward part: norm, products gate and up, their product number by "
        f"number, the product down, and the sum with the vector before. A last norm and product give {vocab:,} logits.",
        f"嵌入把词元换成一个 {dim} 个数的向量。{layers} 层依次更新这个向量。每层有注意力部分：归一化，算 q、k、v 的乘法，按位置旋转，"
        f"{heads} 个头读取 KV 缓存做注意力，输出乘法，加上原来的向量；还有前馈部分：归一化，gate 与 up 两个乘法，逐个数相乘，down 乘法，"
        f"加上原来的向量。最后经过归一化和矩阵乘法，得到 {vocab:,} 个 logits。",
    )
    caption = tr(
        f"The graph of SmolLM2-135M. Boxes with sizes multiply by a matrix; below them stand their weights in all layers together, in "
        f"millions. Embedding and logits use the same matrix. All weights: {weights / 1e6:.1f} million.",
        f"SmolLM2-135M 的计算图。写有尺寸的框表示与矩阵相乘，框下是所有层的权重之和（M 表示百万）。嵌入与 logits 用同一个矩阵。"
        f"权重总数：{weights / 1e8:.3f} 亿。",
    )
    return figure(s, alt=alt, caption=caption)


NAMES = {
    "attention": ("attention", "注意力"),
    "gate, up": ("gate, up", "gate、up"),
    "logits": ("logits", "logits"),
    "all": ("whole step", "整个一步"),
}
STEPS = {
    "decode": ("decode", "解码", "c1"),
    "decode, 64 sequences": ("decode, 64 sequences", "解码，64 个序列", "c4"),
    "prefill, 512 tokens": ("prefill, 512 tokens", "预填充，512 个词元", "c3"),
}


def _at(cell: str, what: str) -> float:
    return float(references.value(f"llm/one_token#{cell}{what}"))


def roofline() -> str:
    """Operations of three steps under the roof that the GPU of the recording has."""
    memory = _at("limits", '["GPU memory"].value') / 1e3  # TB/s
    tensor = _at("limits", '["tensor cores"].value')
    places = {
        step: {name: _at("intensity", f'["{name}"]["{step}"]') for name in NAMES} for step in STEPS
    }
    upright = tr("TFLOP/s at most (logarithmic)", "TFLOP/s 上限（对数）")
    field = Roofline((0.5, 2000), (0.5, tensor * 2), upright=upright)
    of_memory = tr(f"memory: {1e3 * memory:.0f} GB/s", f"显存：{1e3 * memory:.0f} GB/s")
    of_tensor = tr(f"tensor cores: {tensor:.0f} TFLOP/s", f"张量核心：{tensor:.0f} TFLOP/s")
    field.slope(1e3 * memory, tensor, text=of_memory, right=-16, down=-16)
    field.roof(tensor, 1e3 * memory, text=of_tensor, up=-20)
    meet = tensor / memory
    for step, (_, _, tint) in STEPS.items():
        for name, x in places[step].items():
            whole = name == "all"
            field.dot(x, min(tensor, x * memory), tint + " solid" * whole, 8 if whole else 5)
    # Legend, with the words for the small circles of the prefill.
    for i, (en, zh, tint) in enumerate(STEPS.values()):
        y = field.bottom - 88 + 22 * i
        field.s.circle(492, y, 6, tint + " solid").text_from(506, y + 4, tr(en, zh), "", 12)
    attention, one = places["decode, 64 sequences"]["attention"], places["decode"]["gate, up"]
    words = tr("attention, one sequence or 64", "注意力，1 个或 64 个序列")
    field.say(attention, attention * memory, words, "", 12, 18)
    words = tr("products with weights", "与权重相乘")
    field.say(one, one * memory, words, "", 12, 16)
    told = {
        step: ", ".join(f"{tr(*NAMES[name])} {x:.1f}" for name, x in found.items())
        for step, found in places.items()
    }
    alt = tr(
        "FLOPs per byte of operations: "
        + "; ".join(f"{STEPS[step][0]}: {text}" for step, text in told.items())
        + f". Memory and tensor cores meet at {meet:.0f}.",
        "各运算每字节的 FLOP："
        + "；".join(f"{STEPS[step][1]}：{text}" for step, text in told.items())
        + f"。显存与张量核心的上限线在 {meet:.0f} 处相交。",
    )
    caption = tr(
        "Large circles: whole steps. Small circles: attention, gate and up, logits. All stand on the roof, because these are "
        "limits, not measurements. Left of the bend the memory decides, right of it the tensor cores.",
        "大圆：整个一步。小圆：注意力、gate 与 up、logits。所有圆都在屋顶上，因为画的是上限，不是测量值。转折处左边受显存限制，右边受张量核心限制。",
    )
    return figure(field.s, alt=alt, caption=caption)
