"""Figures of the chapter on layers: what stands between the products, and the two styles of RoPE."""

from cudatut.site.drawing import Grid, Svg, figure, tr


def chain(
    dim: int = 576, heads: int = 9, kv_heads: int = 3, head_dim: int = 64, ffn: int = 1536
) -> str:
    """A layer from product to product, and how many numbers of a token go into and come out of each step between."""
    qkv = (heads + 2 * kv_heads) * head_dim
    norm = f"{dim} + {dim}", f"{dim} + {dim}"
    add_norm = tr("addition,\nRMSNorm", "加法、\nRMSNorm")
    product = tr("product", "乘法")
    # name, numbers in and out, or None for what is not of this chapter
    steps = (
        (add_norm, norm),
        (f"{product}\nQ K V", None),
        (tr("RoPE,\nstore", "RoPE、\n存入缓存"), (str(qkv), str(qkv))),
        (tr("attention", "注意力"), None),
        (f"{product}\nO", None),
        (add_norm, norm),
        (tr(f"{product}\ngate, up", f"{product}\ngate、up"), None),
        ("SwiGLU", (f"{ffn} + {ffn}", str(ffn))),
        (f"{product}\ndown", None),
    )
    box, gap, left, top, row = 100, 32, 34, 16, 126
    per_row = 5
    s = Svg(left + per_row * (box + gap) - 10, top + 2 * row - 18)
    for i, (name, moved) in enumerate(steps):
        x, y = left + i % per_row * (box + gap), top + i // per_row * row
        s.rect(x, y, box, 52, "c1" if moved else "c0", name, size=13)
        s.arrow(x - gap + 2, y + 26, x - 3, y + 26, "muted")
        if moved:
            for line, word in enumerate((tr("in", "入"), tr("out", "出"))):
                said = f"{word}: {moved[line]}"
                s.text(x + box / 2, y + 72 + 18 * line, said, "muted", size=13)
    told = "; ".join(
        f"{name.replace(chr(10), ' ')}: {moved[0]} → {moved[1]}"
        for name, moved in steps[1:]
        if moved
    )
    alt = tr(
        f"A layer: products of matrices and attention in grey, and between them the steps of this chapter, with the numbers of a token that go in and come out. {told}.",
        f"一层：灰色的是矩阵乘法与注意力，中间是本章的各步，标有每个词元输入、输出的数的个数。{told}。",
    )
    caption = tr(
        f"A layer with rows of {dim} numbers. Tinted: the steps of this chapter, with the count of numbers of a token that go in and come out.",
        f"一层，每行 {dim} 个数。有颜色的是本章的各步，标有每个词元输入、输出多少个数。",
    )
    return figure(s, alt=alt, caption=caption)


def order(d: int) -> list[int]:
    """Where each new element comes from: 2i from i, 2i + 1 from i + d / 2."""
    return [i // 2 + i % 2 * (d // 2) for i in range(d)]


def pairs(d: int = 8) -> str:
    """Pairs as halves, and the same elements permuted so that pairs are neighbors."""
    cell, left, top, below = 58, 150, 34, 168
    s = Svg(left + d * cell + 20, below + cell + 22)
    s.text_from(8, top + 34, tr("halves", "两半"), "bold")
    s.text_from(8, below + 34, tr("adjacent pairs", "相邻成对"), "bold")
    halves = Grid(s, left, top, cell, gap=(4, 6), rx=0)
    neighbors = Grid(s, left, below, cell, gap=(4, 6), rx=0)
    for new, old in enumerate(order(d)):
        color = f"c{1 + old % (d // 2)}"
        halves.box(0, old, color, f"x{old}")
        neighbors.box(0, new, color, f"x{old}")
        start, end = halves.center(0, old)[0], neighbors.center(0, new)[0]
        s.arrow(start, top + cell - 2, end, below - 4, color)
    middle = left + d * cell / 2
    together = tr("turned together: x[i] and x[i + d/2]", "一起旋转：x[i] 与 x[i + d/2]")
    s.text(middle, 22, together, "muted")
    together = tr("turned together: x[2i] and x[2i + 1]", "一起旋转：x[2i] 与 x[2i + 1]")
    s.text(middle, below + cell + 14, together, "muted")
    moved = ", ".join(map(str, order(d)))
    alt = tr(
        f"A head of {d} numbers. Above, element i is turned together with element i + {d // 2}. Below, the same elements in the order {moved}: now partners are neighbors.",
        f"一个 {d} 个数的头。上面，元素 i 与元素 i + {d // 2} 一起旋转；下面，同样的元素按 {moved} 的次序排列，一起旋转的两个相邻。",
    )
    caption = tr(
        "Equal tints are turned together. In the file, the rows of Wq and Wk stand in the lower order.",
        "颜色相同的一起旋转。文件里 Wq 与 Wk 的行按图中下面一排的次序排列。",
    )
    return figure(s, alt=alt, caption=caption)
